"""`gua unenroll`: forget this host's token for the board."""

from __future__ import annotations

import argparse
import sys

from gua.cli.common import add_cloud_option, add_store_options, locate_database, open_settings
from gua.errors import ExitStatus, GuaError
from gua.text import shown


def configure(parser: argparse.ArgumentParser) -> None:
    add_cloud_option(parser)
    add_store_options(parser)


def run(options: argparse.Namespace) -> int:
    """Remove the enrolment, whatever state it is in. Not to be enrolled is no failure."""
    from gua.cloud.config import config_path
    from gua.cloud.config_file import remove_config
    from gua.cloud.heard import forget_heard
    from gua.privileges import become_owner

    database = locate_database(options, open_settings(options)).path
    path = config_path(options.config, database)
    become_owner(path)
    try:
        was_enrolled = remove_config(path)
    except OSError as exc:
        raise GuaError(f"{shown(str(path), 200)} cannot be removed: {exc.strerror}") from exc
    forget_heard(database)
    if not was_enrolled:
        sys.stdout.write("this host is not enrolled with a board\n")
        return int(ExitStatus.OK)
    sys.stdout.write(
        f"{shown(str(path), 200)} is gone. A daemon that runs with --cloud pushes until it is reloaded or "
        "stopped; the board knows the token until it is revoked there\n"
    )
    return int(ExitStatus.OK)
