"""`gua stop`: ends this database's daemon, and says what it did."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from gua.cli.common import add_store_options, locate_database, open_settings, tell
from gua.cli.daemon import add_pid_file_option
from gua.errors import ExitStatus, GuaError
from gua.text import shown

if TYPE_CHECKING:
    from gua.daemon.record import DaemonRecord


def configure(parser: argparse.ArgumentParser) -> None:
    """Options."""
    add_store_options(parser)
    add_pid_file_option(parser)


def run(options: argparse.Namespace) -> int:
    """Exit status 0 when none runs any more, 1 when one does."""
    from gua.daemon.pid_file import look_after, pid_path
    from gua.daemon.presence import Presence, find_daemon

    database = locate_database(options, open_settings(options)).path
    found = find_daemon(database)
    record = found.record
    if found.presence is Presence.HERE and record is not None:
        if record.unit:
            unit = shown(record.unit)
            raise GuaError(
                f"the daemon (pid {record.pid}) is systemd's, which would start it anew: `systemctl stop {unit}`"
            )
        return _stop(record)
    if found.presence is Presence.ELSEWHERE and record is not None:
        raise GuaError(f"the daemon of host {shown(record.host)} has this database: stop it there")
    if found.presence is Presence.UNNAMED:
        raise GuaError(f"a daemon has {database}, and which process it is cannot be told: end it where it was started")
    if found.presence is Presence.HIDDEN:
        raise GuaError("this user may not see whether a daemon runs: stop it as the database's owner, or as root")
    said = look_after(options.pid_file or pid_path(database), database)
    if said is not None:
        tell(said)
    sys.stdout.write("not running\n")
    return int(ExitStatus.OK)


def _stop(record: DaemonRecord) -> int:
    from gua.clock import SystemClock
    from gua.daemon.ending import PATIENCE_S, stop_process

    stopped = stop_process(record, SystemClock())
    how = f"did not end within {PATIENCE_S:g} s: killed" if stopped.killed else "stopped"
    sys.stdout.write(f"{how} (pid {record.pid})\n")
    for pid in stopped.left:
        tell(
            f"its sampling process (pid {pid}) was left behind: a driver call holds it, and only the driver can free it"
        )
    return int(ExitStatus.OK)
