"""`gua sync-once`: sample once, store it, and answer with what was seen."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gua.cli.common import (
    add_fake_option,
    add_store_options,
    keep_sampling_to_findings,
    locate_database,
    open_settings,
    tell,
)
from gua.cli.output import add_format_option, add_frame_option, emit_document
from gua.errors import ExitStatus, NotEnrolled


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--push",
        choices=("always", "auto", "never"),
        default="always",
        help="send the state to a board: always (default), auto (where enrolled), or never; no board can be "
        "enrolled with yet, so always is refused",
    )
    parser.add_argument("--interval", metavar="DURATION", help="time this sample stands for, when a timer runs this")
    add_format_option(parser)
    add_store_options(parser)
    add_fake_option(parser)
    add_frame_option(parser)


def run(options: argparse.Namespace) -> int:
    """Observe and print.

    Exit status 1 when nothing could be measured, or what was measured not be stored; 4 while a pause stands.
    """
    if options.push == "always":
        raise NotEnrolled("this host is not enrolled with a board; use --push never")
    from gua.clock import SystemClock
    from gua.observe import Asked, observe
    from gua.privileges import become_owner
    from gua.recording import open_source
    from gua.render_observation import render_observation

    # The same setting as the daemon's, with its limits: a tick of a thousand days would cover a thousand days
    settings, clock = open_settings(options, daemon_interval=options.interval), SystemClock()
    cover_ms = 0 if options.interval is None else settings.interval_ms
    location = locate_database(options, settings)
    become_owner(location.path)
    if not options.fake:
        _respect_pause(location.path, clock.now_ms())
    keep_sampling_to_findings()
    source = open_source(settings, clock, fake=options.fake)
    try:
        observed = observe(source, clock, settings, Asked(location.path, cover_ms, options.push, options.fake))
    finally:
        source.close()
    if options.format == "json" or options.frame is not None:
        emit_document(observed.document, options.frame)
    else:
        sys.stdout.write(render_observation(observed.document))
    if observed.failure is None:
        return int(ExitStatus.OK)
    tell(f"sync-once: {observed.failure}")
    return int(ExitStatus.FAILED)


def _respect_pause(database: Path, now_ms: int) -> None:
    """Raises Paused while somebody asked that the driver be left alone."""
    from gua.daemon.pause import PauseUnreadable, refuse_when_paused

    try:
        refuse_when_paused(database, now_ms)
    except PauseUnreadable as exc:
        tell(str(exc))
