"""What `gua-fleet doctor` says: equal findings once, with the hosts that have them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from gua_fleet.model import HostResult
from gua_fleet.protocol import Verdict, judge
from gua_fleet.render import Cell
from gua_fleet.view import Section, View
from gua_fleet.view_hosts import name_list, silent_section

SCHEMA = "gua.fleet-doctor/1"
HEADERS = ("status", "finding", "cure", "hosts")
_WORST_FIRST = {"fail": 0, "warn": 1, "skip": 2, "ok": 3}
_COLUMNS = ("host", "outcome", "ready", "status", "check", "summary", "cure")


def doctor_view(results: Sequence[HostResult], document: Mapping[str, Any], *, verbose: bool) -> View:
    """Everything `gua-fleet doctor` has to say. verbose: the checks that passed, too."""
    return View(
        document,
        lines=[headline(results)],
        sections=[Section("", HEADERS, finding_rows(results, verbose=verbose)), silent_section(results)],
        columns=_COLUMNS,
        flat=list(_flat(results, verbose=verbose)),
    )


def with_protocol(document: Mapping[str, Any], results: Sequence[HostResult]) -> dict[str, Any]:
    """The document of all hosts' answers, each with whether this gua-fleet can read its agent."""
    hosts = [{**host, "protocol": asdict(verdict_of(result))} for host, result in zip(document["hosts"], results)]
    return {**document, "hosts": hosts}


def verdict_of(result: HostResult) -> Verdict:
    """Whether this gua-fleet can read the agent there, by what it says of itself; an older one says nothing."""
    if result.document is not None:
        agent = result.document.get("agent")
        return judge(agent["documents"], agent["version"]) if agent else judge(None, None)
    if result.other_major is not None:
        return Verdict(False, result.detail or "")
    return Verdict(None, f"not known: {result.outcome_text}")


def finding_rows(results: Sequence[HostResult], *, verbose: bool) -> list[tuple[Cell, ...]]:
    """`12 hosts: persistence mode is off` and so on, worst first, then what most hosts have."""
    grouped: dict[tuple[str, str, str, str | None], list[str]] = {}
    for result, check in _checks(results, verbose=verbose):
        key = (check["status"], check["id"], check["summary"], check["cure"])
        grouped.setdefault(key, []).append(result.host.name)
    ordered = sorted(grouped.items(), key=lambda item: (_WORST_FIRST.get(item[0][0], 0), -len(item[1])))
    return [
        (status, f"{_number(hosts)}: {summary} [{check}]", cure, name_list(hosts))
        for (status, check, summary, cure), hosts in ordered
    ]


def headline(results: Sequence[HostResult]) -> str:
    """`3 hosts: 1 ready, 1 not ready (b), 1 did not answer (c)`."""
    ready = [r.host.name for r in results if is_ready(r) and sounds_ready(r)]
    not_ready = [r.host.name for r in results if not sounds_ready(r)]
    silent = [r.host.name for r in results if r.failed]
    left_out = len(results) - len(ready) - len(not_ready) - len(silent)
    parts = [f"{len(ready)} ready"]
    parts += [f"{len(not_ready)} not ready ({name_list(not_ready)})"] if not_ready else []
    parts += [f"{len(silent)} did not answer ({name_list(silent)})"] if silent else []
    parts += [f"{left_out} left out"] if left_out else []
    return f"{_number(results)}: {', '.join(parts)}"


def is_ready(result: HostResult) -> bool:
    return result.document is not None and result.document["ready"] is True


def sounds_ready(result: HostResult) -> bool:
    """Whether it did not say that it is not ready, nor that it writes what we cannot read."""
    return result.document is None or (is_ready(result) and verdict_of(result).readable is not False)


def _checks(results: Sequence[HostResult], *, verbose: bool) -> Iterator[tuple[HostResult, Mapping[str, Any]]]:
    for result in results:
        for check in (*result.document["checks"], _agent_check(result)) if result.document else ():
            if verbose or check["status"] not in ("ok", "skip"):
                yield result, check


def _agent_check(result: HostResult) -> Mapping[str, Any]:
    """Our own finding of an agent that answered."""
    verdict = verdict_of(result)
    status = "fail" if verdict.readable is False else "warn" if verdict.cure else "ok"
    return {"id": "agent", "status": status, "summary": verdict.summary, "cure": verdict.cure}


def _flat(results: Sequence[HostResult], *, verbose: bool) -> Iterator[dict[str, Any]]:
    """One row for each finding, and one for each host without any."""
    for result in results:
        base = {"host": result.host.name, "outcome": result.outcome_text, "ready": is_ready(result)}
        checks = [check for _, check in _checks([result], verbose=verbose)]
        for check in checks or ({},):
            yield {**check, **base, "check": check.get("id")}  # a host may name a field as we name ours


def _number(hosts: Sequence[object]) -> str:
    return f"{len(hosts)} host{'' if len(hosts) == 1 else 's'}"
