"""`gua import`: take over the history that gpu-usage-audit recorded on this host."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from gua.cli.common import add_store_options, locate_database, open_settings
from gua.cli.output import add_format_option, emit_document
from gua.errors import DatabaseMissing, ExitStatus, UsageError

if TYPE_CHECKING:
    from gua.config import Settings
    from gua.legacy.take_over import Taken


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", type=Path, metavar="OLD.db", help="database of gpu-usage-audit, of any version")
    parser.add_argument("--dry-run", action="store_true", help="say what would be taken, and change nothing")
    parser.add_argument(
        "--from-host", metavar="NAME", help="the name it was recorded under, where this host is called otherwise now"
    )
    # The daemon's own call for a database that lay in its place: it is this host's, and is marked when all is taken.
    parser.add_argument("--adopt", action="store_true", help=argparse.SUPPRESS)
    add_format_option(parser)
    add_store_options(parser)


def run(options: argparse.Namespace) -> int:
    """Import and say what was taken, and what could not be known."""
    from gua.legacy.document import import_document, render_import
    from gua.privileges import become_owner

    settings = open_settings(options)
    database = locate_database(options, settings).path
    if not options.dry_run:
        become_owner(database)
    if options.adopt:
        os.nice(10)
    old: Path = options.old
    taken, columns = (
        _look(old, database, settings, options) if options.dry_run else _take(old, database, settings, options)
    )
    document = import_document(taken, columns, str(old), str(database), dry_run=options.dry_run)
    if options.format == "json":
        emit_document(document, None)
    else:
        sys.stdout.write(render_import(document))
    return int(ExitStatus.OK)


def _take(old: Path, database: Path, settings: Settings, options: argparse.Namespace) -> tuple[Taken, str]:
    from gua import __version__
    from gua.clock import SystemClock
    from gua.legacy.source import open_old
    from gua.legacy.take_over import Import
    from gua.recording import open_recording
    from gua.store.files import IMPORTED, rename_database
    from gua.store.past import PastWriter

    in_place = database.exists() and old.exists() and os.path.samefile(old, database)
    if not in_place:
        with open_old(old) as source:  # before a new database is made for nothing
            _check_host(source.host()[0], options)
    with open_recording(database, SystemClock(), fake=False, alone=in_place) as writer:
        if in_place:
            old = _where_it_went(writer.moved_aside, old)
        with open_old(old) as source:
            name = _check_host(source.host()[0], options)
            if not writer.has_run():
                writer.begin_run("import", 0, settings.rule, __version__)
            work = Import(source, settings.rules, name)
            taken = work.into(PastWriter(writer, work.keys(), settings.rule))
            columns = source.columns_of
    if options.adopt:
        rename_database(old, old.with_name(old.name + IMPORTED))
    return taken, columns


def _where_it_went(moved: Optional[Path], old: Path) -> Path:
    if moved is None:
        raise UsageError(f"{old} is the database to import into: name the old one")
    return moved


def _look(old: Path, database: Path, settings: Settings, options: argparse.Namespace) -> tuple[Taken, str]:
    from gua.legacy.source import open_old
    from gua.legacy.take_over import Import, Nothing
    from gua.store.database import open_reader

    with open_old(old) as source:
        work = Import(source, settings.rules, _check_host(source.host()[0], options))
        try:
            with open_reader(database) as reader:
                return work.look(reader.past()), source.columns_of
        except DatabaseMissing:
            return work.look(Nothing()), source.columns_of


def _check_host(recorded: Optional[str], options: argparse.Namespace) -> str:
    """The name the history was recorded under. Raises UsageError when it is not this host's and nobody said so."""
    from gua.host import hostname

    name = recorded or ""
    if options.adopt or not name or name.split(".")[0] in (hostname(), (options.from_host or "").split(".")[0]):
        return name
    raise UsageError(
        f"{options.old} was recorded on host {name}, and this is {hostname()}: if this machine was called so then, "
        f"add --from-host {name}"
    )
