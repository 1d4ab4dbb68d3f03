"""`gua sync-once`: sample once, store it, and answer with what was seen."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Union

from gua.cli.common import (
    add_cloud_option,
    add_fake_option,
    add_store_options,
    keep_sampling_to_findings,
    locate_database,
    open_settings,
    tell,
)
from gua.cli.output import add_format_option, add_frame_option, emit_document
from gua.errors import EnrolmentForbidden, ExitStatus, GuaError, NotEnrolled

if TYPE_CHECKING:
    from gua.observe import SendTick


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--push",
        choices=("always", "auto", "never"),
        default="always",
        help="send the state to the board: always (default; needs `gua enroll`), auto (where enrolled), or never",
    )
    parser.add_argument("--interval", metavar="DURATION", help="time this sample stands for, when a timer runs this")
    add_format_option(parser)
    add_store_options(parser)
    add_cloud_option(parser)
    add_fake_option(parser)
    add_frame_option(parser)


def run(options: argparse.Namespace) -> int:
    """Observe and print.

    Exit status 1 when nothing could be measured, or what was measured not be stored or pushed; 2 when a push was
    asked for and there is no board; 4 while a pause stands.
    """
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
    send = _open_board(options, location.path)  # first of all: who is not enrolled shall not wait for the driver
    if not options.fake:
        _respect_pause(location.path, clock.now_ms())
    keep_sampling_to_findings()
    source = open_source(settings, clock, fake=options.fake)
    try:
        observed = observe(source, clock, settings, Asked(location.path, cover_ms, options.push, options.fake), send)
    finally:
        source.close()
    if options.format == "json" or options.frame is not None:
        emit_document(observed.document, options.frame)
    else:
        sys.stdout.write(render_observation(observed.document))
    for failure in observed.failures:
        tell(f"sync-once: {failure}")
    return int(ExitStatus.FAILED if observed.failures else ExitStatus.OK)


def _open_board(options: argparse.Namespace, database: Path) -> Union[SendTick, GuaError, None]:
    """How to push; None where nobody asked for it, an error where the enrolment cannot be used.

    Raises NotEnrolled, ConfigError when the push is to be there always.
    """
    if options.push == "never":
        return None
    from gua.clock import SystemClock
    from gua.cloud.config import config_path, load_config
    from gua.cloud.heard import HeardKeeper
    from gua.cloud.sender import open_sender
    from gua.observe import may_write

    try:
        config = load_config(config_path(options.config, database), tell)
    except GuaError as exc:
        if options.push == "always":
            raise
        # Whoever may only read, such as a controller's user, was never to push
        reads_only = isinstance(exc, EnrolmentForbidden) and not may_write(database)
        return NotEnrolled(str(exc)) if reads_only else exc
    sender = open_sender(config, tell, HeardKeeper(database, SystemClock()))
    return lambda tick, broken: sender.send(tick, broken=broken)


def _respect_pause(database: Path, now_ms: int) -> None:
    """Raises Paused while somebody asked that the driver be left alone."""
    from gua.daemon.pause import PauseUnreadable, refuse_when_paused

    try:
        refuse_when_paused(database, now_ms)
    except PauseUnreadable as exc:
        tell(str(exc))
