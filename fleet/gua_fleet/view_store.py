"""What `gua-fleet store` shows: what is in the store, what is wrong with it, what room came back. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gua.report.cells import UNKNOWN
from gua.text import shown
from gua.units import format_duration, to_iso
from gua_fleet.show import one_line
from gua_fleet.store.care import Gone, HostInfo, Info
from gua_fleet.store.forgotten import Forgot
from gua_fleet.view import Section, View

SCHEMA = "gua.fleet-store-info/1"
CHECK_SCHEMA = "gua.fleet-store-check/1"
VACUUM_SCHEMA = "gua.fleet-store-vacuum/1"
FORGET_SCHEMA = "gua.fleet-forget/1"
FORGET_USER_SCHEMA = "gua.fleet-forget-user/1"
_DAY_MS = 86_400_000
_MB = 1e6
_COLUMNS = ("name", "outcome", "asked_at", "pulled_at", "histories", "first_day", "last_day", "ticks")


def info_view(info: Info, *, place: str, now_ms: int) -> View:
    """place: fit to be shown."""
    flat = [_flat(host) for host in info.hosts]
    document = {
        "schema": SCHEMA,
        "store": place,
        "store_schema": info.schema,
        "size_bytes": info.size_bytes,
        "rows": info.rows,
        "hosts": flat,
        "forgotten": info.forgotten,
    }
    table = Section(
        "",
        ("host", "pulled", "last outcome", "from", "to", "samples' ticks", "histories"),
        [_row(host, now_ms) for host in info.hosts],
        "llllrrr",
        host_column=0,
    )
    return View(document, lines=list(_lines(info, place)), sections=[table], columns=_COLUMNS, flat=flat)


def check_view(wrong: Sequence[str], *, place: str) -> View:
    """wrong: one line for each thing that is. place: fit to be shown."""
    told = [one_line(line, width=400) for line in wrong]
    verdict = "whole" if not told else "1 thing is wrong" if len(told) == 1 else f"{len(told)} things are wrong"
    return View(
        {"schema": CHECK_SCHEMA, "store": place, "whole": not told, "wrong": told},
        lines=[f"{place}: {verdict}", *told],
        columns=("wrong",),
        flat=[{"wrong": line} for line in told],
    )


def vacuum_view(before: int, after: int, *, place: str) -> View:
    """before, after: size in bytes. place: fit to be shown."""
    sizes = {"before_bytes": before, "after_bytes": after}
    return View(
        {"schema": VACUUM_SCHEMA, "store": place, **sizes},
        lines=[f"{place}: {before / _MB:,.1f} MB before, {after / _MB:,.1f} MB now"],
        columns=tuple(sizes),
        flat=[sizes],
    )


def forget_view(host: str, gone: Gone, *, dry_run: bool, place: str) -> View:
    """What of a host went, or with `dry_run` would go. place: fit to be shown."""
    amounts = {"host": host, "histories": gone.histories, "rows": gone.rows, "dry_run": dry_run}
    histories = "1 history" if gone.histories == 1 else f"{gone.histories} histories"
    verb = "would go" if dry_run else "are gone"
    return View(
        {"schema": FORGET_SCHEMA, "store": place, **amounts},
        lines=[f"{one_line(host)}: {histories} with {gone.rows:,} rows {verb}"],
        columns=tuple(amounts),
        flat=[amounts],
    )


def forget_user_view(user: str, forgot: Forgot, *, place: str) -> View:
    """Where a person was named, and is not any more. place: fit to be shown."""
    hosts = len(forgot.hosts)
    where = f"was named on {hosts} host{'' if hosts == 1 else 's'}" if hosts else "was not named here"
    amounts = {"user": user, "hosts": list(forgot.hosts), "names": forgot.names}
    return View(
        {"schema": FORGET_USER_SCHEMA, "store": place, **amounts},
        lines=[f"{one_line(user)} {where}; the time is now that of `(expired)`, and no pull brings the name back"],
        columns=tuple(amounts),
        flat=[{**amounts, "hosts": " ".join(forgot.hosts)}],
    )


def _lines(info: Info, place: str) -> list[str]:
    rows = sum(info.rows.values())
    lines = [
        f"{place}: {info.size_bytes / _MB:,.1f} MB, {rows:,} rows of {len(info.hosts)} hosts, schema {info.schema}."
    ]
    if info.forgotten:
        lines.append(f"Names that are not kept: {info.forgotten}.")
    return lines


def _flat(host: HostInfo) -> dict[str, object]:
    return {
        "name": host.name,
        "outcome": host.outcome,
        "asked_at": to_iso(host.asked_ms),
        "pulled_at": None if host.pulled_ms is None else to_iso(host.pulled_ms),
        "histories": len(host.histories),
        "first_day": _day(host.first_day),
        "last_day": _day(host.last_day),
        "ticks": host.ticks,
    }


def _row(host: HostInfo, now_ms: int) -> tuple[str, ...]:
    ago = UNKNOWN if host.pulled_ms is None else f"{format_duration(max(0, now_ms - host.pulled_ms))} ago"
    days = (_day(host.first_day) or UNKNOWN, _day(host.last_day) or UNKNOWN)
    return (shown(host.name), ago, shown(host.outcome) or UNKNOWN, *days, f"{host.ticks:,}", str(len(host.histories)))


def _day(day: int | None) -> str | None:
    return None if day is None else to_iso(day * _DAY_MS)[:10]
