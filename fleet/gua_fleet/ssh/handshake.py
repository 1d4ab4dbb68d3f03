"""Hand-shake, host key and log-in over a socket that is connected already: Fabric, tuned as measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import fabric  # type: ignore[import-untyped]  # it has no type hints
import paramiko

from gua_fleet.ssh.attempt import Attempt
from gua_fleet.ssh.dial import hang_up
from gua_fleet.ssh.keys import OfferKeys
from gua_fleet.ssh.runner import FleetConnection
from gua_fleet.ssh.target import Target
from gua_fleet.ssh.transport import DISABLED_ALGORITHMS, SweepTransport
from gua_fleet.ssh.trust import HostKeys

# What a TCP connection and SSH's hand-shake may take, so that a dead host costs less than the deadline: so much, or
# this part of a deadline that was made longer, as for a slow link.
CONNECT_LIMIT_S = 10.0
CONNECT_PART = 0.5


@dataclass(frozen=True)
class Shared:
    """What all connections of a sweep have in common. config: Fabric's, which is dear to make."""

    config: fabric.Config
    host_keys: HostKeys


def limit_s(attempt: Attempt, target: Target) -> float:
    """Seconds that connecting and the hand-shake may take. Raises HostFailure when the attempt's time is up."""
    most_s = target.connect_limit_s or max(CONNECT_LIMIT_S, CONNECT_PART * attempt.timeout_s)
    return min(attempt.remaining_s(), most_s)


def shake_hands(attempt: Attempt, target: Target, keys: OfferKeys, connection: Any, shared: Shared) -> FleetConnection:
    """A session with the target over `connection` (a socket or a channel), which `attempt.close` ends.

    Raises what the libraries raise: `gua_fleet.ssh.translate` makes an outcome of it.
    """
    attempt.on_close(connection.close)
    fabric_connection = FleetConnection(
        target.address,
        user=target.user,
        port=target.port,
        config=shared.config,
        connect_kwargs=_connect_kwargs(attempt, target, keys, connection, shared.host_keys),
    )
    client: paramiko.SSHClient = fabric_connection.client
    client.set_missing_host_key_policy(_OurPolicy(attempt, target, shared.host_keys))
    # After a failed connect only the client's own close frees its thread, and only a closed socket wakes that.
    attempt.on_close(client.close)
    attempt.on_close(lambda: hang_up(connection))
    fabric_connection.open()
    return fabric_connection


def _connect_kwargs(
    attempt: Attempt, target: Target, keys: OfferKeys, connection: Any, host_keys: HostKeys
) -> dict[str, Any]:
    most_s = limit_s(attempt, target)
    return {
        "sock": connection,
        "timeout": most_s,
        "banner_timeout": most_s,
        "auth_timeout": attempt.timeout_s,
        "channel_timeout": attempt.timeout_s,
        "disabled_algorithms": DISABLED_ALGORITHMS,
        "transport_factory": partial(SweepTransport, key_types_on_file=host_keys.key_types(target)),
        "auth_strategy": keys,
    }


class _OurPolicy(paramiko.MissingHostKeyPolicy):
    """Decides about every host key: the client itself is given no known keys, so that it asks for each."""

    def __init__(self, attempt: Attempt, target: Target, host_keys: HostKeys) -> None:
        self._attempt = attempt
        self._target = target
        self._host_keys = host_keys

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Return to accept the key; raises HostFailure to refuse it. The log-in follows."""
        self._host_keys.check(self._target, key.asbytes())
        self._attempt.stage = "auth"
