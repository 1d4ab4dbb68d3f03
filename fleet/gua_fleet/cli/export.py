"""`gua-fleet export`: the store's whole history as files for analysts."""

from __future__ import annotations

import argparse
from pathlib import Path

from gua import __version__
from gua.cli.output import add_format_option
from gua.clock import SystemClock
from gua.errors import GuaError
from gua.units import to_iso
from gua_fleet.cli.common import add_config_option, print_text
from gua_fleet.cli.store import add_store_option
from gua_fleet.cli.stored import reading_store


def configure(parser: argparse.ArgumentParser) -> None:
    """Options: where from, where to, in which form."""
    form = parser.add_mutually_exclusive_group(required=True)
    form.add_argument("--parquet", type=Path, metavar="DIR", help="as Parquet files into this folder (needs pyarrow)")
    form.add_argument("--csv", type=Path, metavar="DIR", help="as CSV files into this folder")
    add_format_option(parser)
    add_config_option(parser)
    add_store_option(parser)
    parser.add_argument(
        "--no-names",
        dest="names",
        action="store_const",
        const=False,
        help="no names of people or processes: fit to be given to anyone",
    )


def run(options: argparse.Namespace) -> int:
    """Write the files, then the manifest that says they are whole. Exit status 0."""
    from gua_fleet.export.files import Csv, Form, Parquet  # peewee is loaded where the store is opened
    from gua_fleet.export.names import Names, nameless
    from gua_fleet.export.source import Source
    from gua_fleet.export.tree import MANIFEST, write_export

    form: Form = Csv() if options.parquet is None else Parquet()
    folder: Path = options.csv if options.parquet is None else options.parquet
    people = options.config.users
    with reading_store(options, SystemClock().now_ms()) as session:
        names = nameless(session, people) if options.names is False else Names(people)
        about = {
            "gua_fleet": __version__,
            "store_schema": session.value("SELECT max(version) FROM migration"),
            "newest_pull": _newest_pull(session.value("SELECT max(pulled_ms) FROM history")),
            "names": options.names is not False,
        }
        try:
            written = write_export(Source(session, names), form, folder, about)
        except OSError as exc:
            raise GuaError(f"{folder}: cannot be written: {exc.strerror}; nothing in it is called whole") from exc
    if options.format == "json":
        print_text((folder / MANIFEST).read_text(encoding="utf-8"))
        return 0
    print_text(f"written: {folder}: {written.rows:,} rows in {written.files} files, {written.new} of them new\n")
    return 0


def _newest_pull(ms: int | None) -> str | None:
    return None if ms is None else to_iso(ms)
