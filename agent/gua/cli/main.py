"""Entry of `gua`: registers commands and turns errors into one line. No logic lives here.

Each command is a module with `configure(parser)` and `run(options) -> int`; only the chosen one is imported.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Optional

from gua import __version__
from gua.cli.output import emit_error
from gua.errors import ExitStatus, GuaError

# name -> (module, one line of help). Order is the order of `gua --help`.
COMMANDS: dict[str, tuple[str, str]] = {
    "daemon": ("gua.cli.daemon", "sample this host's GPUs until told to stop"),
    "report": ("gua.cli.report", "what the GPUs did: worked, held, free, not seen, and by whom"),
    "doctor": ("gua.cli.doctor", "check whether this host can be sampled, changing nothing"),
    "sync-once": ("gua.cli.sync_once", "sample once, store it, and push it where enrolled"),
    "demo": ("gua.cli.demo", "record a made-up day without a GPU and report on it"),
    "config": ("gua.cli.config", "check the settings; `config --help` lists them all"),
    "version": ("gua.cli.version", "print the version"),
}


def build_parser(
    program: str, commands: Mapping[str, tuple[str, str]], chosen: Optional[str]
) -> argparse.ArgumentParser:
    """The parser; only `chosen` gets its options, because only its module is imported."""
    parser = argparse.ArgumentParser(
        prog=program, description="Which GPU time was worked, held without work, free, or not seen."
    )
    parser.add_argument("--version", action="version", version=f"{program} {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module, summary) in commands.items():
        command = subparsers.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name == chosen:
            loaded = importlib.import_module(module)
            loaded.configure(command)
            command.set_defaults(run=loaded.run)
    return parser


def run_command(program: str, commands: Mapping[str, tuple[str, str]], argv: Sequence[str]) -> int:
    """Parse, run one command, and give its exit status. Our own errors become one line on stderr."""
    chosen = next((word for word in argv if not word.startswith("-")), None)
    options = argparse.Namespace()
    try:
        build_parser(program, commands, chosen).parse_args(argv, namespace=options)
        return int(options.run(options))
    except GuaError as exc:
        emit_error(exc, getattr(options, "frame", None))
        sys.stderr.write(f"{program}: {exc}\n")
        return int(exc.exit_status)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader (head, less) went away. Keep the interpreter from complaining when it flushes at exit.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitStatus.OK)
    except Exception:  # noqa: BLE001 - the one last catch: a user gets a line and a file, never a traceback
        sys.stderr.write(f"{program}: this is a defect of ours; please report it with {_save_traceback()}\n")
        return int(ExitStatus.FAILED)


def _save_traceback() -> str:
    """Path of a new private file that holds the current traceback."""
    import tempfile  # only a defect needs these
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="gua-defect-", suffix=".txt", delete=False) as file:
        traceback.print_exc(file=file)
    return file.name


def main(argv: Optional[Sequence[str]] = None) -> int:
    """The `gua` command. Returns its exit status."""
    return run_command("gua", COMMANDS, sys.argv[1:] if argv is None else argv)
