"""Rows of the store made into parts of the document that explains. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Optional, cast

from gua.ledger.decision import Comparison, Decision, decide
from gua.ledger.explained import (
    ComparisonInfo,
    DecisionInfo,
    GapInfo,
    SeenHolder,
    Sharing,
    StretchHolder,
    StretchInfo,
    TickInfo,
    UserFigure,
    UserHold,
)
from gua.ledger.gaps import Gap
from gua.ledger.shares import Amounts
from gua.ledger.stretches import TickStretch
from gua.model import Rule, UserSource
from gua.report.amounts import states_of
from gua.report.document import RuleInfo
from gua.store.evidence_rows import CardTickRow, HeldRow
from gua.store.ledger import LedgerRow
from gua.units import to_iso

_SOURCES = {
    UserSource.OWNER: "the process's owner, an ordinary account",
    UserSource.LOGINUID: "the login that started it (its owner is root or a system account)",
    UserSource.SLICE: "the systemd slice of the user it runs in",
    UserSource.SUBUID: "the account that its mapped uid belongs to (/etc/subuid)",
    UserSource.CONTAINER: "its container, as no account could be told",
    UserSource.SYSTEM: "its owner, a system account, as nobody else could be told",
    UserSource.UNKNOWN: "nobody: nothing about the process could be read",
    UserSource.UNATTRIBUTED: "nobody: memory that no listed process accounts for",
}


_IMPORTED_SOURCES = {
    UserSource.OWNER: "the process's owner, as gpu-usage-audit recorded it",
    UserSource.LOGINUID: "the login that started it, as gpu-usage-audit recorded it",
}
"""That tool took the login first, and whether an owner is an ordinary account it did not ask."""


def source_text(source: UserSource, *, imported: bool) -> str:
    """By which rule a user was named, in words that follow "named by"."""
    return (_IMPORTED_SOURCES if imported else {}).get(source, _SOURCES[source])


def rule_info(rule: Rule) -> RuleInfo:
    return cast(RuleInfo, asdict(rule))


def tick_info(row: CardTickRow, fault: Optional[str], who: Mapping[int, LedgerRow]) -> TickInfo:
    """One tick. who: ledger rows by hold id, as far as they are known."""
    evidence = row.evidence
    listed = evidence.holders is not None
    return {
        "at": to_iso(row.at_ms),
        "covers": [[to_iso(start), to_iso(end)] for start, end in row.spans],
        "status": row.status.value,
        "fault": fault,
        "state": row.verdict.state.value,
        "reason": None if row.verdict.reason is None else row.verdict.reason.value,
        "rule": rule_info(row.rule),
        "decision": _decision(decide(evidence, row.rule)),
        "util_pct": row.util_pct,
        "util_max_pct": row.util_max_pct,
        "util_source": None if row.util_source is None else row.util_source.value,
        "memory_used_mb": row.memory_used_mb,
        "held_mb": evidence.held_mb if listed else None,
        "unattributed_mb": evidence.unattributed_mb,
        "temperature_c": row.temperature_c,
        "power_w": row.power_w,
        "holders": [_seen(held, who.get(held.hold), imported=row.tick_id < 0) for held in row.holds]
        if listed
        else None,
        "unknown": _unknown(row),
    }


def _decision(decision: Decision) -> DecisionInfo:
    comparisons = [_comparison(one) for one in decision.comparisons]
    return {"comparisons": comparisons, "because": decision.because, "text": decision.text}


def _comparison(one: Comparison) -> ComparisonInfo:
    return {
        "threshold": one.threshold,
        "value": one.value,
        "limit": one.limit,
        "unit": one.unit,
        "margin": one.margin,
        "over": one.over,
    }


def _unknown(row: CardTickRow) -> list[str]:
    """What could not be read, so that nobody takes its absence for a zero."""
    if row.evidence.absent is not None:
        return ["every reading"]
    missing = {
        "utilisation": row.util_pct is None,
        "the lists of processes": row.evidence.holders is None,
        "the memory in use": row.memory_used_mb is None,
        "what some process holds": row.evidence.held_unknown,
        "what some process that draws uses": row.evidence.graphics_unknown,
        "temperature": row.temperature_c is None,
        "power": row.power_w is None,
    }
    return [name for name, is_missing in missing.items() if is_missing]


def _seen(held: HeldRow, row: Optional[LedgerRow], *, imported: bool) -> SeenHolder:
    return {
        "hold": held.hold,
        "user": held.user,
        "user_source": held.user_source.value,
        "source_text": source_text(held.user_source, imported=imported),
        "process": held.process,
        "pid": held.pid,
        "type": held.type.value,
        "memory_mb": held.memory_mb,
        "owner_uid": row.owner_uid if row else None,
        "login_uid": row.login_uid if row else None,
        "container_id": row.container_id if row else None,
        "slurm_job": row.slurm_job if row else None,
        "mounts": row.mounts if row else None,
    }


def stretch_info(one: TickStretch, user: Optional[str] = None) -> StretchInfo:
    """A stretch. user: name only this one's processes."""
    named = [held for held in one.holds if user is None or held.user == user]
    return {
        "since": to_iso(one.since_ms),
        "until": to_iso(one.until_ms),
        "ticks": one.ticks,
        "card_s": one.covered_ms / 1000,
        "state": one.verdict.state.value,
        "reason": None if one.verdict.reason is None else one.verdict.reason.value,
        "rule": rule_info(one.rule),
        "util_pct": None if one.util_pct is None else list(one.util_pct),
        "util_unknown_ticks": one.util_unknown,
        "memory_used_mb": None if one.memory_mb is None else list(one.memory_mb),
        "statuses": sorted(status.value for status in one.statuses),
        "holders": [_stretch_holder(held) for held in named] if one.listed else None,
    }


def _stretch_holder(held: HeldRow) -> StretchHolder:
    return {
        "hold": held.hold,
        "user": held.user,
        "process": held.process,
        "pid": held.pid,
        "type": held.type.value,
        "memory_mb": held.memory_mb,
    }


def gap_info(gap: Gap) -> GapInfo:
    ended, following = (None if ms is None else to_iso(ms // 1000 * 1000) for ms in (gap.ended_ms, gap.next_ms))
    return {
        "since": to_iso(gap.since_ms),
        "until": to_iso(gap.until_ms),
        "why": gap.why,
        "ended": ended,
        "next": following,
        "text": gap_words(gap.why, ended, following),
    }


def gap_words(why: str, ended: Optional[str], following: Optional[str]) -> str:
    """One sentence without a full stop. ended, following: times of the daemons before and after, as they are shown."""
    then = "" if following is None else f"; the next one began {following}"
    if why == "no_daemon":
        known = "no gua daemon is known to have run then"
        return f"{known if ended is None else f'no gua daemon ran: the one before ended {ended}'}{then}"
    return {
        "not_known_yet": "the card had not been seen on this host yet",
        "retired": "the card is retired: it is expected no longer",
        "in_instances": "the card was cut into MIG instances, each of which was seen as a card of its own",
        "card_whole": "the card was not cut into MIG instances then, and was seen as a whole one",
        "paused": "sampling was paused on request, so nobody looked",
        "daemon_silent": "the daemon stored nothing and never said that it ended: it was killed, or the host was off "
        f"or asleep{then}",
        "not_sampled": "a daemon ran and stored no sample of this card: it was busy or stopped, or the clock was set",
        "future": "this time is still to come",
    }[why]


def hold_info(row: LedgerRow, card_ms: int) -> UserHold:
    """A hold with the time that was counted of it."""
    return {
        "id": row.id,
        "process": row.process,
        "pid": row.pid,
        "user_source": row.source.value,
        "source_text": source_text(row.source, imported=row.first_tick < 0),
        "since": to_iso(row.since_ms),
        "until": None if row.is_open else to_iso(row.until_ms),
        "card_s": card_ms / 1000,
        "memory_mb": row.memory_mb,
        "owner_uid": row.owner_uid,
        "login_uid": row.login_uid,
        "container_id": row.container_id,
        "slurm_job": row.slurm_job,
        "mounts": row.mounts,
    }


def figure_of(amounts: Amounts) -> UserFigure:
    states = states_of(amounts.state_ms)
    return {
        "card_s": amounts.card_ms / 1000,
        "share_s": amounts.share_ms / 1000,
        "shared_card_s": amounts.shared_ms / 1000,
        "idle_held_card_s": states["idle-held"],
        "idle_held_long_card_s": amounts.long_idle_ms / 1000,
        "states": states,
        "samples": amounts.samples,
    }


def sharing_of(users: int, amounts: Amounts) -> Sharing:
    return {
        "users": users,
        "card_s": amounts.card_ms / 1000,
        "share_s": amounts.share_ms / 1000,
        "idle_held_long_card_s": amounts.long_idle_ms / 1000,
        "states": states_of(amounts.state_ms),
        "samples": amounts.samples,
    }
