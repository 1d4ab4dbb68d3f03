"""`gua doctor`: is this host ready to be sampled? Exit status 0 ready, 1 not."""

from __future__ import annotations

import argparse
import sys

from gua.cli.common import add_cloud_option, add_store_options, keep_sampling_to_findings, open_settings
from gua.cli.output import add_format_option, add_frame_option, emit_document
from gua.errors import ExitStatus


def configure(parser: argparse.ArgumentParser) -> None:
    add_store_options(parser)
    parser.add_argument("--cloud", action="store_true", help="ask the board too, whether it takes this host's token")
    add_cloud_option(parser)
    add_format_option(parser)
    add_frame_option(parser)


def run(options: argparse.Namespace) -> int:
    """Run the checks and print them."""
    from gua.clock import SystemClock, process_age_s
    from gua.cloud.config import config_path
    from gua.doctor.render_text import render_doctor
    from gua.doctor.run import BUDGET_S, run_doctor, sampling_deadline_s
    from gua.location import database_path
    from gua.nvml.client import WorkerClient

    settings = open_settings(options)
    clock = SystemClock()
    location = database_path(options.db, settings.store_path)
    left_s = BUDGET_S - process_age_s()  # a loaded host takes seconds to start a program
    keep_sampling_to_findings()
    document = run_doctor(
        sampler=WorkerClient(deadline_s=sampling_deadline_s(left_s, settings.nvml_deadline_ms / 1000), clock=clock),
        clock=clock,
        left_s=left_s,
        location=location,
        trust_pid_namespace=settings.trust_pid_namespace,
        enrolment=config_path(options.config, location.path),
        ask_board=options.cloud,
    )
    if options.format == "json" or options.frame is not None:
        emit_document(document, options.frame)
    else:
        sys.stdout.write(render_doctor(document))
    return int(ExitStatus.OK if document["ready"] else ExitStatus.FAILED)
