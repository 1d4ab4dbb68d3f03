"""The values that travel between the controller's rooms: hosts in, one outcome per host out."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gua_fleet.secrets import Secret

Document = dict[str, Any]
"""A host's own JSON document, already checked for its `schema` name and major number."""


class Outcome(str, enum.Enum):
    """What became of one host in one sweep. Every host of the inventory has exactly one, always."""

    OK = "ok"
    UNREACHABLE = "unreachable"
    AUTH_FAILED = "auth-failed"
    HOST_KEY_UNKNOWN = "host-key-unknown"
    HOST_KEY_CHANGED = "host-key-changed"
    TIMEOUT = "timeout"  # shown as timeout:STAGE; the stage is in HostResult.stage
    AGENT_MISSING = "agent-missing"
    AGENT_ERROR = "agent-error"
    BAD_OUTPUT = "bad-output"
    NEEDS_PRIVILEGE = "needs-privilege"
    STORE_FAILED = "store-failed"  # this machine's own store could not take what the host said
    PAUSED = "paused"
    NO_GPU = "no-gpu"
    NO_HISTORY = "no-history"
    MAINTENANCE = "maintenance"
    SKIPPED = "skipped"
    STORED = "stored"  # nobody asked it: its history was read from the fleet store


# These say nothing went wrong: the host has nothing to tell, or was left out on purpose.
NOT_FAILURES = frozenset(
    {
        Outcome.OK,
        Outcome.PAUSED,
        Outcome.NO_GPU,
        Outcome.NO_HISTORY,
        Outcome.MAINTENANCE,
        Outcome.SKIPPED,
        Outcome.STORED,
    }
)

Stage = Literal["connect", "auth", "open", "exec", "output"]


@dataclass(frozen=True)
class Host:
    """One host of the inventory, connection variables resolved.

    name: the inventory's name, the key in every table. address: where to connect (ansible_host or the name).
    port, user: None where the inventory does not say: then ssh_config decides, or 22 and the local user.
    become, become_user: whether writing commands go through sudo, and to which account (None: the agent's own).
    password: for the log-in; become_password: for sudo; passphrase: of the identity file; each None when not given.
    gua_command: the agent's command as an argument list; empty means the default search.
    jump: `user@host:port` of a ProxyJump, or None. proxy_command: an explicit ProxyCommand, or None.
    ssh_options: -o settings from the inventory's ssh arguments, keys in lower case.
    cards: `gua_cards`, how many cards the administrator says it has; None when not told.
    skip_reason: why no connection will be tried (`Outcome.SKIPPED` or MAINTENANCE), else None.
    """

    name: str
    address: str
    port: int | None = None
    user: str | None = None
    connection: Literal["ssh", "local"] = "ssh"
    identity_file: str | None = None
    jump: str | None = None
    proxy_command: str | None = None
    ssh_options: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    gua_command: tuple[str, ...] = ()
    become: bool = False
    become_user: str | None = None
    password: Secret | None = None
    become_password: Secret | None = None
    passphrase: Secret | None = None
    scheduler: str | None = None
    maintenance: str | None = None
    cards: int | None = None
    skip_reason: str | None = None


@dataclass(frozen=True)
class Stored:
    """What the fleet store has of one host. It is no answer: what its cards do now is not in it.

    document: a `gua.report/1` of its history. pulled_at_ms: when that was last brought here, by this machine's clock.
    newest_tick_ms: its newest tick, by the host's clock; None where there is none.
    """

    document: Document
    pulled_at_ms: int
    newest_tick_ms: int | None = None


@dataclass(frozen=True)
class HostResult:
    """What one host answered. document is set exactly when outcome is OK.

    detail: one line naming cause and cure, fit for a table; None when outcome is OK and nothing is to be said.
    stage: how far it got, for TIMEOUT. answered_at_ms: this machine's clock (Unix, UTC) when the answer was whole.
    stored: what the store has of a host that gave no report. other_major: the name of the document that it answered
    with (`gua.report/2`) where that is the one asked for but for its major number; None otherwise.
    """

    host: Host
    outcome: Outcome
    detail: str | None = None
    document: Document | None = None
    stage: Stage | None = None
    elapsed_s: float = 0.0
    answered_at_ms: int | None = None
    stored: Stored | None = None
    other_major: str | None = None

    @property
    def failed(self) -> bool:
        return self.outcome not in NOT_FAILURES

    @property
    def report(self) -> Document | None:
        """What it answered, else what the store has of it."""
        return self.document if self.document is not None or self.stored is None else self.stored.document

    @property
    def outcome_text(self) -> str:
        """The word for tables and documents: `timeout:STAGE` for time-outs, else the outcome."""
        return (
            f"{self.outcome.value}:{self.stage}"
            if self.outcome is Outcome.TIMEOUT and self.stage
            else self.outcome.value
        )


@dataclass(frozen=True)
class Seen:
    """What a host said when it last answered. at: ISO 8601, UTC. models: how many cards of each, slices left out."""

    at: str
    cards: int
    models: Mapping[str, int] = field(default_factory=dict)
