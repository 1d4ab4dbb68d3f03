"""`gua-fleet status`: does every host sample, since when not, and how much of the last day was seen."""

from __future__ import annotations

import argparse
from dataclasses import replace

from gua.clock import SystemClock
from gua_fleet.cli.common import Answers, add_fleet_options, ask_again, ask_fleet, exit_status
from gua_fleet.cli.now import remember, with_knowledge
from gua_fleet.cli.view import add_view_options, check_output, show
from gua_fleet.probes.status import STATUS_PROBE, is_older, is_status, older_probe
from gua_fleet.view_status import is_at_work, status_view


def configure(parser: argparse.ArgumentParser) -> None:
    """Options: which hosts, how to ask, which form."""
    add_view_options(parser)
    add_fleet_options(parser)


def run(options: argparse.Namespace) -> int:
    """Print the agents' state. Exit status 1 when a host does not sample or did not answer, 3 when none answered.

    A paused host is as it was asked to be.
    """
    check_output(options.output)
    answers = _ask(options)
    hosts = with_knowledge(options, answers)
    remember(one for one in answers.results if one.document is not None and not is_status(one.document))
    show(status_view(answers.results, hosts), options)
    by_name = {host.name: host for host in hosts}
    return int(exit_status(answers.results, options.allow_missing, sound=lambda result: is_at_work(result, by_name)))


def _ask(options: argparse.Namespace) -> Answers:
    """Every agent's own word; where one is too old for that, its report."""
    answers = ask_fleet(options, STATUS_PROBE)
    older = [result.host.name for result in answers.results if is_older(result)]
    if not older:
        return answers
    again = {
        result.host.name: result for result in ask_again(options, answers, older, older_probe(SystemClock().now_ms()))
    }
    return replace(answers, results=tuple(again.get(result.host.name, result) for result in answers.results))
