"""`gua daemon`: samples until told to stop; in the background, unless systemd or a person wants to see it work."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from gua.cli.common import (
    add_cloud_option,
    add_fake_option,
    add_store_options,
    locate_database,
    open_settings,
    tell,
)
from gua.errors import ExitStatus, GuaError, UsageError

if TYPE_CHECKING:
    from gua.cloud.config import CloudConfig
    from gua.config import Settings
    from gua.daemon.orders import Orders


def configure(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument(
        "--foreground",
        action="store_true",
        help="stay in the foreground and log to stderr, as systemd wants it; SIGHUP reads the settings again",
    )
    add_daemon_options(parser)


def add_daemon_options(parser: argparse.ArgumentParser) -> None:
    """The options of `gua daemon` and `gua start`."""
    parser.add_argument("--interval", metavar="DURATION", help="time between two samples (default: 30s)")
    parser.add_argument("--cloud", action="store_true", help="push the newest state to the board (needs `gua enroll`)")
    parser.add_argument("--textfile", type=Path, metavar="DIR", help="write metrics for Prometheus into DIR")
    parser.add_argument("--per-user", action="store_true", help="with people's names in these metrics")
    parser.add_argument("--log-file", type=Path, metavar="FILE", help="log (default: beside the database; stderr)")
    add_pid_file_option(parser)
    add_cloud_option(parser)
    add_store_options(parser)
    add_fake_option(parser)


def add_pid_file_option(parser: argparse.ArgumentParser) -> None:
    """`--pid-file`."""
    parser.add_argument("--pid-file", type=Path, metavar="FILE", help="pid file (default: beside the database)")


def run(options: argparse.Namespace) -> int:
    """Sample until SIGTERM or SIGINT, or see a process off that does."""
    from gua.clock import SystemClock
    from gua.daemon.log import log_path, log_to_file, log_to_stderr
    from gua.daemon.serve import serve
    from gua.privileges import become_owner

    _make_absolute(options)
    settings = _settings(options)
    location = locate_database(options, settings)
    _refuse_same_file(options, location.path)
    owner = become_owner(location.path)
    if owner is not None:
        tell(f"going on as {owner}, who owns the database")
    orders = _orders(options, location.path)
    if not options.foreground:
        return _start(orders, settings, options.log_file or log_path(location.path))
    if options.log_file is not None:
        log_to_file(options.log_file)
    else:
        log_to_stderr()
    serve(orders, settings, SystemClock())
    return int(ExitStatus.OK)


def _start(orders: Orders, settings: Settings, log: Path) -> int:
    """Exit status 1, with the end of its log, when the daemon could not begin."""
    from gua.clock import SystemClock
    from gua.daemon.background import in_background
    from gua.daemon.lock import describe_holder, is_locked, make_folder
    from gua.daemon.log import log_to_file, size_of, tail
    from gua.daemon.serve import serve

    if is_locked(orders.database):  # no log need be opened to find that out
        raise GuaError(f"{describe_holder(orders.database)} already samples into {orders.database}")
    make_folder(orders.database)
    before = size_of(log)

    def work(begun: Callable[[], None]) -> None:
        log_to_file(log)
        serve(orders, settings, SystemClock(), begun)

    begun = in_background(work, orders.database.parent, SystemClock())
    if not begun.error:
        sys.stdout.write(f"started (pid {begun.pid}), sampling every {settings.interval_ms / 1000:g} s; log {log}\n")
        return int(ExitStatus.OK)
    for line in tail(log, before):
        sys.stderr.write(f"  {line}\n")
    raise GuaError(f"the daemon did not start: {begun.error}; its log is {log}")


def _settings(options: argparse.Namespace) -> Settings:
    return open_settings(options, daemon_interval=options.interval)


def _orders(options: argparse.Namespace, database: Path) -> Orders:
    """Raises NotEnrolled and ConfigError where a board was asked for: before anything else is touched."""
    from gua.daemon.orders import Orders
    from gua.daemon.pid_file import pid_path

    load_cloud: Optional[Callable[[], CloudConfig]] = None
    if options.cloud:
        from gua.cloud.config import config_path, load_config

        path = config_path(options.config, database)

        def load_cloud() -> CloudConfig:
            return load_config(path, tell)

        load_cloud()
    return Orders(
        database=database,
        pid_file=options.pid_file or pid_path(database),
        load_settings=lambda: _settings(options),
        fake=options.fake,
        load_cloud=load_cloud,
        textfile=options.textfile,
        per_user=options.per_user,
        enrolment=options.config,
    )


def _make_absolute(options: argparse.Namespace) -> None:
    """The daemon lives in another directory than the one these were named in."""
    for name in ("db", "settings", "config", "pid_file", "log_file", "textfile"):
        path: Optional[Path] = getattr(options, name)
        if path is not None:
            setattr(options, name, path.absolute())


def _refuse_same_file(options: argparse.Namespace, database: Path) -> None:
    named = [path for path in (options.pid_file, options.log_file, database) if path is not None]
    if len(set(named)) < len(named):
        raise UsageError("--db, --pid-file and --log-file: two of them are one file; name different ones")
