"""Asking the fleet what its cards do now, as `free`, `holds` and `status` do it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from gua.clock import SystemClock
from gua.errors import GuaError
from gua_fleet.cli.common import Answers, ask_fleet
from gua_fleet.last_seen import load_seen, save_seen, state_path
from gua_fleet.model import HostResult
from gua_fleet.period import fleet_window
from gua_fleet.present import HostNow, Knowledge, fleet_now
from gua_fleet.probes.report import report_probe

HOUR_MS = 3_600_000


def ask_now(options: argparse.Namespace, *, window_ms: int) -> tuple[Answers, tuple[HostNow, ...]]:
    """Every host's report over the last `window_ms` milliseconds, and what it says of now; hosts are remembered."""
    now_ms = SystemClock().now_ms()
    since_ms, until_ms = fleet_window(now_ms - window_ms, now_ms, now_ms)
    answers = ask_fleet(options, report_probe(since_ms=since_ms, until_ms=until_ms, tz="UTC"))
    hosts = with_knowledge(options, answers)
    remember(answers.results)
    return answers, hosts


def with_knowledge(options: argparse.Namespace, answers: Answers) -> tuple[HostNow, ...]:
    """Every host now, with what the settings and earlier answers tell about it."""
    seen = load_seen(state_path(), answers.inventory.hosts)
    return fleet_now(answers.results, Knowledge(options.config.users, seen))


def remember(results: Iterable[HostResult]) -> None:
    """Keep when each of these was last seen, and with which cards; where that cannot be kept a line says so."""
    try:
        save_seen(state_path(), results)
    except GuaError as exc:
        sys.stderr.write(f"{exc}\n")
