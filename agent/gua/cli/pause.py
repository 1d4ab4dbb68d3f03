"""`gua pause`: the daemon lets go of the driver, for a reset, a MIG change or another driver."""

from __future__ import annotations

import argparse
import os
import pwd
import sys
from collections.abc import Mapping
from pathlib import Path

from gua.cli.common import add_store_options, locate_database, open_settings, tell
from gua.clock import Clock, SystemClock
from gua.errors import ExitStatus, UsageError
from gua.text import storable

# The daemon looks every second; more, and its deadline, is for a sample under way and a child that shuts NVML down.
_PATIENCE_S = 20.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--for", dest="lasts", metavar="DURATION", help="how long (default: until `gua resume`)")
    add_store_options(parser)


def run(options: argparse.Namespace) -> int:
    """Ask for the pause, and wait until the daemon has let go. Exit status 1 when it does not."""
    from gua.daemon.pause import LONGEST_MS, PauseRequest, save_pause
    from gua.privileges import become_owner
    from gua.units import parse_duration_ms

    lasts_ms = None if options.lasts is None else parse_duration_ms(options.lasts)
    if lasts_ms is not None and lasts_ms > LONGEST_MS:
        raise UsageError("--for: longer than a year; leave it out to pause until `gua resume`")
    settings, clock, by = open_settings(options), SystemClock(), _asked_by()
    location = locate_database(options, settings)
    become_owner(location.path)
    now_ms = clock.now_ms()
    request = PauseRequest(now_ms, None if lasts_ms is None else now_ms + lasts_ms, by)
    save_pause(location.path, request)
    sys.stdout.write(f"{request}\n")
    return _wait(location.path, clock, _PATIENCE_S + settings.nvml_deadline_ms / 1000)


def _wait(database: Path, clock: Clock, patience_s: float) -> int:
    from gua.daemon.lock import has_driver, is_locked

    give_up_s = clock.monotonic_s() + patience_s
    while has_driver(database) is not False:
        if clock.monotonic_s() >= give_up_s:
            tell(
                f"the daemon has not let go of the driver within {patience_s:g} s: a driver call may hold its sampling "
                "process; the pause stands, and `gua resume` ends it"
            )
            return int(ExitStatus.FAILED)
        clock.sleep_s(0.1)
    running = is_locked(database)
    sys.stdout.write(
        "the daemon has let go of the driver\n"
        if running
        else "no gua daemon samples into this database; one that starts will wait\n"
    )
    return int(ExitStatus.OK)


def _asked_by(environ: Mapping[str, str] = os.environ) -> str:
    """Who asks, for people to know whom to ask: the one behind sudo, where there is one."""
    if environ.get("SUDO_USER") and os.geteuid() == 0:
        return storable(environ["SUDO_USER"])
    try:
        return storable(pwd.getpwuid(os.geteuid()).pw_name)
    except KeyError:
        return f"uid {os.geteuid()}"
