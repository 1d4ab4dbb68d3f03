"""`gua-fleet sync-once`: every host sampled now, and the fleet as it is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from gua.errors import GuaError
from gua_fleet.anonymous import mask_of
from gua_fleet.cli.common import add_fleet_options, ask_fleet, exit_status, fleet_document
from gua_fleet.cli.now import remember, with_knowledge
from gua_fleet.cli.view import add_view_options, check_output, show
from gua_fleet.latest import latest_folder, load_latest, save_latest
from gua_fleet.model import HostResult
from gua_fleet.probes.sync_once import SYNC_ONCE_PROBE
from gua_fleet.view_sync import SCHEMA, has_sampled, sync_view


def configure(parser: argparse.ArgumentParser) -> None:
    """Options: which hosts, how to ask, which form."""
    add_view_options(parser, people=True)
    add_fleet_options(parser)


def run(options: argparse.Namespace) -> int:
    """Print the cards of all hosts now. Exit status 1 when a host did not answer or sample, 3 when none answered."""
    check_output(options.output)
    answers = ask_fleet(options, SYNC_ONCE_PROBE)
    hosts, results = with_knowledge(options, answers), answers.results
    latest = load_latest(latest_folder(), answers.inventory.hosts)
    remember(results)
    _keep(results)
    if options.names is False:
        mask = mask_of(hosts)
        hosts = tuple(map(mask.host, hosts))
        results = tuple(map(mask.result, results, hosts))
        latest = {mask.hosts[name]: document for name, document in latest.items()}
    show(sync_view(results, hosts, fleet_document(SCHEMA, results), latest), options)
    return int(exit_status(answers.results, options.allow_missing, sound=has_sampled))


def _keep(results: Iterable[HostResult]) -> None:
    try:
        save_latest(latest_folder(), results)
    except GuaError as exc:
        sys.stderr.write(f"{exc}\n")
