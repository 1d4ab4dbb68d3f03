"""`gua status`: does a daemon sample here, by what it stored last. Exit status 0 when it does, 3 when not."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from gua.cli.common import add_cloud_option, add_store_options, locate_database, open_settings, tell
from gua.cli.daemon import add_pid_file_option
from gua.cli.output import add_format_option, add_frame_option, emit_document
from gua.errors import ExitStatus, NoGpu


def configure(parser: argparse.ArgumentParser) -> None:
    """Options."""
    add_store_options(parser)
    add_pid_file_option(parser)
    add_cloud_option(parser)
    add_format_option(parser)
    add_frame_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print it."""
    from gua.clock import SystemClock
    from gua.cloud.config import config_path
    from gua.cloud.heard import board_line
    from gua.daemon.pid_file import look_after, pid_path
    from gua.daemon.status import read_status, sentence
    from gua.host import procfs_root
    from gua.pci import is_gpu_less, read_nvidia_devices, sysfs_root

    settings = open_settings(options)
    location = locate_database(options, settings)
    asks = options.format == "json" or options.frame is not None
    gpu_less = is_gpu_less(read_nvidia_devices(sysfs_root()), sysfs_root(), procfs_root())
    status: dict[str, Any] = read_status(
        location.path,
        SystemClock(),
        gpu_less=gpu_less,
        scheduler=settings.scheduler,
        enrolment=config_path(options.config, location.path),
        with_day=asks,
    )
    if options.frame is not None and gpu_less and not status["cards"]:
        raise NoGpu("this host has no NVIDIA device on its PCI bus: there is nothing to sample")
    if status["state"] == "stopped":
        said = look_after(options.pid_file or pid_path(location.path), location.path)
        if said is not None:
            tell(said)
    if asks:
        emit_document(status, options.frame)
    else:
        sys.stdout.write(f"{sentence(status)}\n{board_line(status['board'])}")
    return int(ExitStatus.OK if status["running"] else ExitStatus.NOT_RUNNING)
