"""`gua-fleet doctor`: `gua doctor` on every host, equal findings told once."""

from __future__ import annotations

import argparse

from gua_fleet.cli.common import add_fleet_options, ask_fleet, exit_status, fleet_document
from gua_fleet.cli.view import add_view_options, check_output, show
from gua_fleet.probes.doctor import DOCTOR_PROBE
from gua_fleet.view_doctor import SCHEMA, doctor_view, sounds_ready, with_protocol


def configure(parser: argparse.ArgumentParser) -> None:
    """Options: which hosts, how to ask, which form, how much."""
    add_view_options(parser)
    add_fleet_options(parser, more="; and the checks that passed, too")


def run(options: argparse.Namespace) -> int:
    """Print the findings. Exit status 1 when a host is not ready or did not answer, 3 when none answered."""
    check_output(options.output)
    results = ask_fleet(options, DOCTOR_PROBE).results
    document = with_protocol(fleet_document(SCHEMA, results), results)
    show(doctor_view(results, document, verbose=options.verbose), options)
    return int(exit_status(results, options.allow_missing, sound=sounds_ready))
