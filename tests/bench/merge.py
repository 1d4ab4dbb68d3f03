"""CPU of merging and rendering many hosts (`PYTHONPATH=agent:fleet python -m tests.bench.merge [hosts]`): no test.

Documents are of 8 cards, a week of hours, 12 users (half of them on that host only) and 8 holds each.
Goal: merging 1,000 and rendering them as a table in 1.5 s of CPU; the other forms are shown beside it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from gua_fleet.anonymous import without_names
from gua_fleet.merge import merge_reports
from gua_fleet.model import Host, HostResult, Outcome
from gua_fleet.render_csv import render_csv
from gua_fleet.render_html import render_html
from gua_fleet.render_json import render_json
from gua_fleet.render_md import render_md
from gua_fleet.render_table import render_fleet
from tests.documents import NOW_MS, SINCE, SINCE_MS, UNTIL_MS, card, report, states, user

GOAL_S = 1.5


def result(number: int) -> HostResult:
    """One host's answer; every tenth is silent."""
    name = f"gpu-node-{number:04d}.cluster.example.org"
    host = Host(name, name, groups=("all", f"rack{number // 40}", "h100"), cards=8)
    if number % 10 == 9:
        return HostResult(host, Outcome.TIMEOUT, "no answer within 20 s", stage="connect")
    cards = [card(f"GPU-{number:04d}-{index}", states(7200, 3600, 3600), index=index) for index in range(8)]
    users = [user(f"user{place}" if place < 6 else f"uid:{place}", states(600, 300)) for place in range(12)]
    hours = [{"weekday": day, "hour": hour, "card_s": states(60, 40, 30)} for day in range(7) for hour in range(24)]
    document = report(cards, users, store_id=name, hours_of_week=hours, holds=[_hold(one["uuid"]) for one in cards])
    return HostResult(host, Outcome.OK, document=document)


def _hold(uuid: str) -> dict[str, Any]:
    amounts = {"states": states(600, 300), "idle_held_long_card_s": 0.0, "memory_mb": 4096}
    return {"user": "user1", "process": "python", "pid": 4242, "card": uuid, "since": SINCE, "until": None, **amounts}


def timed(name: str, work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of `work`, printed, and what it gave."""
    before_s = time.process_time()
    made = work()
    spent_s = time.process_time() - before_s
    size = f", {len(made) / 1000:.0f} KB" if isinstance(made, str) else ""
    print(f"{name}: {spent_s:.2f} s CPU{size}")  # noqa: T201 - a script
    return spent_s, made


def main(hosts: int) -> None:
    results = [result(number) for number in range(hosts)]
    window = {"since_ms": SINCE_MS, "until_ms": UNTIL_MS, "tz": "Etc/UTC", "generated_at_ms": NOW_MS}
    merged_s, document = timed(f"merge {hosts} hosts", lambda: merge_reports(results, **window))
    table_s, _ = timed("table", lambda: render_fleet(document))
    print(f"merge and table: {merged_s + table_s:.2f} s CPU (goal {GOAL_S} s for 1000 hosts)")  # noqa: T201
    timed("html", lambda: render_html(document))
    timed("json", lambda: render_json(document))
    timed("csv", lambda: render_csv(document))
    timed("md", lambda: render_md(document))
    timed("without names", lambda: without_names(document))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
