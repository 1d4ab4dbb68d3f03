"""`gpu-usage-audit`, the predecessor's command: its words and their options, answered by `gua`.

There `daemon` stays in the foreground, which is what its unit files expect.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Optional

from gua import __version__
from gua.cli import main as gua_main
from gua.errors import ExitStatus

PROGRAM = "gpu-usage-audit"


def main(argv: Optional[Sequence[str]] = None) -> int:
    """The `gpu-usage-audit` command. Returns its exit status."""
    parser = _build_parser()
    options = parser.parse_args(sys.argv[1:] if argv is None else argv)
    if options.command == "help":
        parser.print_help()
        return int(ExitStatus.OK)
    for flag in _unused(options):
        sys.stderr.write(f"{PROGRAM}: --{flag} is no longer needed and changes nothing\n")
    return gua_main.run_command(PROGRAM, gua_main.COMMANDS, translate(options))


# What each command of `gua` still takes. The interval of old ticks is recorded with them; the demonstration is a day.
_BACKGROUND = ("db", "interval", "config", "pid-file", "log-file")
_PASSED = {
    "daemon": ("db", "interval", "config"),
    "start": _BACKGROUND,
    "status": ("db", "pid-file"),
    "stop": ("db", "pid-file"),
    "report": ("db", "since", "width"),
    "demo": ("db",),
    "version": (),
}
# Its `gua daemon` was its background; these three came to the older command with us


def translate(options: argparse.Namespace) -> list[str]:
    """The words for `gua` that do the same. Pure."""
    words = [options.command] + (["--foreground"] if options.command == "daemon" else [])
    words += ["--cloud"] if getattr(options, "cloud", False) else []
    given = {flag: getattr(options, flag.replace("-", "_")) for flag in _PASSED[options.command]}
    return words + [f"--{flag}={value}" for flag, value in given.items() if value is not None]


def _unused(options: argparse.Namespace) -> list[str]:
    passed = _PASSED[options.command]
    return [flag for flag in _HELP if flag not in passed and getattr(options, flag.replace("-", "_"), None) is not None]


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description="The older command of gua: see `gua --help` for everything it can do."
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="<command>", required=True)
    daemon = _add(commands, "daemon", "sample this host's GPUs in the foreground", "db", "interval", "config")
    start = _add(commands, "start", "sample in the background", *_BACKGROUND)
    for command in (daemon, start):
        command.add_argument("--cloud", action="store_true", help="push the newest state to the board")
    _add(commands, "status", "tell how the background is", "db", "pid-file")
    _add(commands, "stop", "end the background", "db", "pid-file")
    _add(commands, "report", "print the report", "db", "since", "interval", "width")
    _add(commands, "demo", "show a made-up report without a GPU", "db", "ticks", "interval")
    _add(commands, "version", "print the version")
    _add(commands, "help", "show this message")
    return parser


_HELP = {
    "db": "database",
    "interval": "time between two samples, such as 30s, 1m, 200ms",
    "config": "enrolment with the board (used with --cloud)",
    "pid-file": "pid file of the background",
    "log-file": "log of the background",
    "since": "window of the report, such as 1h, 24h",
    "width": "width of the bars",
    "ticks": "number of made-up samples",
}


def _add(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str, *flags: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
    for flag in flags:
        parser.add_argument(f"--{flag}", help=_HELP[flag])
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
