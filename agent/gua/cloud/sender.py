"""One state to the board: built, sent, and sent again in the older revision where the board knows no newer one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Optional

from gua.cloud.client import BoardClient
from gua.cloud.config import CloudConfig
from gua.cloud.heard import HeardKeeper
from gua.cloud.payload import Payload, Sender, to_payload
from gua.cloud.server_url import is_plain_http
from gua.errors import GuaError, PayloadRefused, TokenRefused
from gua.host import hostname
from gua.model import Tick
from gua.text import shown

_NEWEST_REVISION = 2
# As a path (`gpus.0.processes.3.type`) or within a sentence; a card's own memoryUsedMb is in revision 1 too.
_ADDITIONS = re.compile(
    r"""usage_?state | processes\S*\.(type|memory_?used_?mb)\b
    | ['"`]type['"`] | \bfield:?\ type\b | (?<![.\w])memory_?used_?mb""",
    re.IGNORECASE | re.VERBOSE,
)


class PayloadUnbuildable(GuaError):
    """A state could not be put into the board's words: a defect of ours, that must cost nothing but the push."""

    code = "payload_unbuildable"


class StateSender:
    """Sends states to the board of one enrolment.

    tell: given a line where people should know something that is no failure. renew: the enrolment that there is now,
    asked when the board refuses the one in use; raises GuaError where there is none. keeper: notes what the board took.
    """

    def __init__(
        self,
        config: CloudConfig,
        client: BoardClient,
        tell: Callable[[str], None],
        renew: Optional[Callable[[], CloudConfig]] = None,
        keeper: Optional[HeardKeeper] = None,
    ) -> None:
        self._keeper = keeper
        self._config = config
        self._client = client
        self._tell = tell
        self._renew = renew
        self._revision = _NEWEST_REVISION
        self._left_out: frozenset[str] = frozenset()
        self._driver_version: Optional[str] = None

    def send(self, tick: Tick, *, broken: bool = False) -> None:
        """Send it. broken: see `to_payload`. Raises BoardFailed, PayloadUnbuildable."""
        try:
            self._send_or_renew(tick, broken)
        except Exception as exc:
            if self._keeper is not None:
                defect = GuaError(f"the push failed: {type(exc).__name__}")  # its text may hold the token
                self._keeper.failed(self._config, exc if isinstance(exc, GuaError) else defect)
            raise
        if self._keeper is not None:
            self._keeper.accepted(self._config)

    def _send_or_renew(self, tick: Tick, broken: bool) -> None:
        try:
            self._send(tick, broken)
        except TokenRefused:
            if not self._is_renewed():
                raise
            self._send(tick, broken)

    def _is_renewed(self) -> bool:
        """Whether somebody did meanwhile what a refusal asks for, `gua enroll`; from now on that counts."""
        try:
            config = None if self._renew is None else self._renew()
        except GuaError:
            return False  # the refusal is what must be told
        if config is None or config == self._config:
            return False
        self._config, self._client, self._revision = config, BoardClient(config.server_url), _NEWEST_REVISION
        self._tell(f"this host was enrolled anew: pushing to {config.server_url} as {shown(config.display_name)}")
        _warn_of_plain_http(config, self._tell)
        return True

    def _send(self, tick: Tick, broken: bool) -> None:
        payload = self._build(tick, broken)
        try:
            self._client.push(payload.body, self._config.agent_token)
        except PayloadRefused as exc:
            if self._revision == 1 or not names_an_addition(exc.names):
                raise
            # Kept for this process's life: a board that was brought up to date is found out by the next one
            self._revision = 1
            self._tell("the board does not know states and types of use: they are left out from now on")
        else:
            return
        self._client.push(self._build(tick, broken).body, self._config.agent_token)

    def _build(self, tick: Tick, broken: bool) -> Payload:
        # A driver that is gone cannot tell its version; the one it had is still the best answer
        self._driver_version = tick.driver_version or self._driver_version
        sender = Sender(hostname(), self._config.host_id, self._config.display_name)
        try:
            payload = to_payload(
                replace(tick, driver_version=self._driver_version), sender, self._revision, broken=broken
            )
        except Exception as exc:  # noqa: BLE001 - whatever a reading may be, it is stored already and stays so
            reason = f"{type(exc).__name__}: {exc}"
        else:
            self._tell_left_out(frozenset(payload.left_out))
            return payload
        raise PayloadUnbuildable(f"the state cannot be put into the board's words: {shown(reason, 200)}")

    def _tell_left_out(self, left_out: frozenset[str]) -> None:
        for line in sorted(left_out - self._left_out):
            self._tell(line)
        self._left_out = left_out


def open_sender(
    config: CloudConfig,
    tell: Callable[[str], None],
    keeper: HeardKeeper,
    renew: Optional[Callable[[], CloudConfig]] = None,
) -> StateSender:
    """The sender of an enrolment. keeper, renew: see there. Contacts nobody yet."""
    _warn_of_plain_http(config, tell)
    return StateSender(config, BoardClient(config.server_url), tell, renew, keeper)


def _warn_of_plain_http(config: CloudConfig, tell: Callable[[str], None]) -> None:
    if is_plain_http(config.server_url):
        tell(f"{config.server_url} is not encrypted: everybody on the way can read this host's token")


def names_an_addition(names: tuple[str, ...]) -> bool:
    """Whether a refusal names what revision 2 added. Pure."""
    return any(_ADDITIONS.search(name) for name in names)
