"""Small integers that stand for words in the database. A contract with every database written so far: only append."""

from __future__ import annotations

from gua.model import ProcessType, Reason, State, TickStatus, UserSource, UtilSource, Verdict

# One number for state and reason together: the first three need no reason, the rest are UNKNOWN.
VERDICTS: tuple[Verdict, ...] = (
    Verdict(State.ACTIVE),
    Verdict(State.IDLE_HELD),
    Verdict(State.TRULY_IDLE),
    Verdict(State.UNKNOWN, Reason.UTIL_UNAVAILABLE),
    Verdict(State.UNKNOWN, Reason.PROCESSES_UNAVAILABLE),
    Verdict(State.UNKNOWN, Reason.CARD_LOST),
    Verdict(State.UNKNOWN, Reason.CARD_MISSING),
    Verdict(State.UNKNOWN, Reason.DRIVER),
    Verdict(State.UNKNOWN, Reason.UNRESPONSIVE),
    Verdict(State.UNKNOWN, Reason.MEMORY_UNAVAILABLE),
)
STATES: tuple[State, ...] = (State.ACTIVE, State.IDLE_HELD, State.TRULY_IDLE, State.UNKNOWN)
STATUSES: tuple[TickStatus, ...] = (TickStatus.OK, TickStatus.PARTIAL, TickStatus.ERROR, TickStatus.UNRESPONSIVE)
PROCESS_TYPES: tuple[ProcessType, ...] = (ProcessType.COMPUTE, ProcessType.MPS, ProcessType.GRAPHICS)
USER_SOURCES: tuple[UserSource, ...] = (
    UserSource.OWNER,
    UserSource.LOGINUID,
    UserSource.SLICE,
    UserSource.SUBUID,
    UserSource.CONTAINER,
    UserSource.SYSTEM,
    UserSource.UNKNOWN,
    UserSource.UNATTRIBUTED,
)
UTIL_SOURCES: tuple[UtilSource, ...] = (UtilSource.POINT, UtilSource.SAMPLES, UtilSource.GPM)

VERDICT_CODE = {verdict: code for code, verdict in enumerate(VERDICTS)}
STATUS_CODE = {status: code for code, status in enumerate(STATUSES)}
PROCESS_TYPE_CODE = {kind: code for code, kind in enumerate(PROCESS_TYPES)}
USER_SOURCE_CODE = {source: code for code, source in enumerate(USER_SOURCES)}
UTIL_SOURCE_CODE = {source: code for code, source in enumerate(UTIL_SOURCES)}

IDLE_HELD = VERDICT_CODE[Verdict(State.IDLE_HELD)]
GRAPHICS = PROCESS_TYPE_CODE[ProcessType.GRAPHICS]
STATE_OF_VERDICT: tuple[int, ...] = tuple(STATES.index(verdict.state) for verdict in VERDICTS)

# Bits of occupancy.flags.
FLAG_HELD_UNKNOWN = 1
FLAG_GRAPHICS_UNKNOWN = 2
FLAG_MEMORY_V1 = 4
FLAG_UNIFIED = 8
