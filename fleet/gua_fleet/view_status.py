"""What `gua-fleet status` says: does every host sample, and how much of the last day was seen. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gua.cloud.heard import accepted_words, is_silent
from gua.report.cells import UNKNOWN, percent
from gua.text import shown
from gua.units import MS_PER_SECOND, format_duration, parse_time_ms
from gua_fleet.model import HostResult
from gua_fleet.present import HostNow
from gua_fleet.probes.status import status_of
from gua_fleet.view import Section, View
from gua_fleet.view_hosts import name_list, unseen_section

SCHEMA = "gua.fleet-status/1"
HEADERS = ("host", "sampling", "newest sample", "last day seen", "cards", "version", "enrolled")
_STANDINGS = (
    *("sampling", "not sampling", "not known", "paused", "did not answer"),
    *("without a card", "left out", "counted under another name"),
)
# In the table; the reason of one that does not sample is another.
_IN_A_WORD = {**dict.fromkeys(_STANDINGS, UNKNOWN), "sampling": "yes", "paused": "paused", "not sampling": None}
_WITH_CLOUD = "do the daemons run with --cloud?"
_COLUMNS = (
    *("name", "outcome", "state", "sampling", "paused", "last_tick_age_s", "cards"),
    *("expected_card_s", "observed_card_s", "agent_version", "driver_version"),
    *("last_accepted_age_s", "failing_since"),
)


def status_view(results: Sequence[HostResult], hosts: Sequence[HostNow]) -> View:
    """Everything `gua-fleet status` has to say. hosts: of the same results, in the same order."""
    pairs = list(zip(results, hosts, strict=True))
    rows = [_document(result, host) for result, host in pairs]
    document = {"schema": SCHEMA, "hosts": rows}
    table = Section(
        "",
        HEADERS,
        [_row(row, host) for row, host in zip(rows, hosts, strict=True) if row["document"]],
        "lrrrrll",
        host_column=0,
    )
    return View(
        document,
        lines=[headline(hosts), *version_lines(rows), *silent_lines(rows)],
        sections=[table, unseen_section(hosts)],
        columns=_COLUMNS,
        flat=[_flat(row) for row in rows],
    )


def standing(host: HostNow) -> str:
    """What a host is counted as, one of the words of `_STANDINGS`."""
    if host.failed:
        return "did not answer"
    if host.left_out:
        return "left out"
    if host.twin_of:
        return "counted under another name"
    if host.has_none:
        return "without a card"
    if host.sampling:
        return "sampling"
    if host.daemon == "unknown":
        return "not known"
    return "paused" if host.paused else "not sampling"


def is_at_work(result: HostResult, hosts: Mapping[str, HostNow]) -> bool:
    """Whether samples come from there, or need not: one without history that was asked does not sample either."""
    return standing(hosts[result.host.name]) not in ("not sampling", "not known")


def headline(hosts: Sequence[HostNow]) -> str:
    """`4 hosts: 2 sampling, 1 not sampling (gpu03), 1 did not answer (gpu04)`."""
    names: dict[str, list[str]] = {word: [] for word in _STANDINGS}
    for host in hosts:
        names[standing(host)].append(host.name)
    sampling = names.pop("sampling")
    parts = [f"{len(sampling)} sampling"]
    parts += [f"{len(found)} {word} ({name_list(found)})" for word, found in names.items() if found]
    return f"{len(hosts)} host{'' if len(hosts) == 1 else 's'}: {', '.join(parts)}"


def version_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line where agents are of different versions, the rarer ones by name."""
    versions: dict[str, list[str]] = {}
    for row in rows:
        if row["document"]:
            versions.setdefault(row["document"]["agent_version"], []).append(row["name"])
    if len(versions) < 2:
        return []
    ordered = sorted(versions.items(), key=lambda item: (-len(item[1]), item[0]))
    _, *others = [f"{shown(version)} ({name_list(names)})" for version, names in ordered]
    return [f"Agents differ: {shown(ordered[0][0])} on {len(ordered[0][1])} of them, {', '.join(others)}"]


def silent_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line for each reason why a board takes nothing of hosts that sample, with the hosts by name."""
    silent: dict[tuple[bool, str | None], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["document"] and _is_silent(row["document"]):
            board = row["document"]["board"]
            silent.setdefault((_tells(board), board["reason"]), []).append(row)
    return [_silent_line(reason, found, known=known) for (known, reason), found in silent.items()]


def _tells(board: Mapping[str, Any]) -> bool:
    """Whether anything is kept there of what its board took."""
    return any(board.get(name) for name in ("last_accepted_at", "none_since", "failing_since"))


def _silent_line(reason: str | None, rows: Sequence[Mapping[str, Any]], *, known: bool) -> str:
    names = name_list([row["name"] for row in rows])
    if not known:
        return f"What the board hears of {names} is not known: {_WITH_CLOUD}"
    why = shown(reason, 200) if reason else f"and no push fails: {_WITH_CLOUD}"
    return f"The board hears nothing of {names}: {_last_accepted([row['document']['board'] for row in rows])}, {why}"


def _last_accepted(boards: Sequence[Mapping[str, Any]]) -> str:
    """In words, of the one that took a state last, or is known for the shortest time to have taken none."""
    newest = min((age for board in boards if (age := board["last_accepted_age_s"]) is not None), default=None)
    none_since = max((since for board in boards if (since := board.get("none_since"))), default=None)
    several = len(boards) > 1 and (newest is not None or none_since is not None)
    return accepted_words(newest, none_since) + (" at the latest" if several else "")


def _is_silent(status: Mapping[str, Any]) -> bool:
    board = status["board"]
    if board is None or not status["sampling"] or status["last_tick_at"] is None:
        return False
    interval_ms = round((status["interval_s"] or 0) * MS_PER_SECOND)
    return is_silent(board, parse_time_ms(status["last_tick_at"]), interval_ms)


def _document(result: HostResult, host: HostNow) -> dict[str, Any]:
    document = None if result.document is None else status_of(result.document, host)
    return {"name": host.name, "outcome": host.outcome, "detail": host.detail, "document": document}


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    status = row["document"] or {}
    # What we say ourselves comes last: a host may put any name into its own words
    return {**(status.get("board") or {}), **status.get("last_day", {}), **status, **row}


def _row(row: Mapping[str, Any], host: HostNow) -> tuple[str, ...]:
    status = row["document"]
    age_s, last_day = status["last_tick_age_s"], status["last_day"]
    enrolled = {True: "yes", False: "no", None: UNKNOWN}[status["enrolled"]]
    return (
        row["name"],
        _IN_A_WORD.get(standing(host)) or _why_not(status["state"]),
        "never" if age_s is None else _age(age_s),
        percent(last_day["observed_card_s"], last_day["expected_card_s"]),
        str(status["cards"]),
        shown(status["agent_version"]),
        enrolled,
    )


def _why_not(state: str | None) -> str:
    """A daemon that is there and does not sample is another matter than none."""
    return state if state in ("stuck", "starting", "elsewhere") else "no"


def _age(seconds: float) -> str:
    if seconds < 0:
        return f"{format_duration(round(-seconds * MS_PER_SECOND))} ahead"
    return f"{format_duration(round(seconds * MS_PER_SECOND))} ago"
