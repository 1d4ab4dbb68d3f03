"""Jump hosts without OpenSSH on this machine: each hop a session of the library's own, its key checked as strictly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gua_fleet.errors import HostFailure
from gua_fleet.ssh.attempt import Attempt
from gua_fleet.ssh.dial import dial
from gua_fleet.ssh.handshake import Shared, limit_s, shake_hands
from gua_fleet.ssh.keys import OfferKeys
from gua_fleet.ssh.target import Target
from gua_fleet.ssh.translate import FAILURES, translate


def open_gateway(
    attempt: Attempt, target: Target, of_hop: Callable[[str], tuple[Target, OfferKeys]], shared: Shared
) -> Any:
    """A channel to the target through all its jump hosts. Raises HostFailure that names the hop in trouble."""
    channel: Any = None
    hops = [of_hop(hop) for hop in target.hops]
    for position, (hop, keys) in enumerate(hops):
        onward = hops[position + 1][0] if position + 1 < len(hops) else target
        attempt.stage = "connect"
        try:
            if channel is None:
                channel = dial(attempt, hop.address, hop.port, family=hop.family, limit_s=limit_s(attempt, hop))
            session = shake_hands(attempt, hop, keys, channel, shared)
            channel = session.transport.open_channel(
                "direct-tcpip", (onward.address, onward.port), ("127.0.0.1", 0), timeout=limit_s(attempt, hop)
            )
        except FAILURES as exc:
            failure = translate(exc, attempt, hop, keys.offered)
            raise HostFailure(
                failure.outcome, f"through jump host {hop.address}: {failure.detail}", failure.stage
            ) from exc
    return channel
