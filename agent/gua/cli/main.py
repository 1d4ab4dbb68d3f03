"""Entry of `gua`: registers commands and turns errors into one line. No logic lives here.

Each command is a module with `configure(parser)` and `run(options) -> int`; only the chosen one is imported.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import io
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, Optional

from gua import __version__
from gua.cli.output import emit_error
from gua.errors import ExitStatus, GuaError
from gua.text import shown

# name -> (module, one line of help). Order is the order of `gua --help`.
COMMANDS: dict[str, tuple[str, str]] = {
    "daemon": ("gua.cli.daemon", "sample this host's GPUs until told to stop, in the background"),
    "start": ("gua.cli.start", "the same as `gua daemon`"),
    "status": ("gua.cli.status", "does a daemon sample here, and how did its last tick go"),
    "stop": ("gua.cli.stop", "end the daemon"),
    "metrics": ("gua.cli.metrics", "the present state and today's sums in Prometheus text format"),
    "report": ("gua.cli.report", "what the GPUs did: worked, held, free, not seen, and by whom"),
    "holds": ("gua.cli.holds", "the ledger of holds: who held which card from when to when, and what came of it"),
    "explain": ("gua.cli.explain", "the evidence behind a figure: samples, gaps, rule, and who was named by what"),
    "top": ("gua.cli.top", "what every card does now, live in a terminal"),
    "doctor": ("gua.cli.doctor", "check whether this host can be sampled, changing nothing"),
    "sync-once": ("gua.cli.sync_once", "sample once, store it, and push it to the board"),
    "enroll": ("gua.cli.enroll", "enrol this host with a board, by a one-time token"),
    "unenroll": ("gua.cli.unenroll", "forget this host's token for the board"),
    "pause": ("gua.cli.pause", "let go of the driver, for a reset, a MIG change or another driver"),
    "resume": ("gua.cli.resume", "end a pause"),
    "card": ("gua.cli.card", "list the cards of this host's history, or retire one that is gone"),
    "import": ("gua.cli.import_", "take over the history of gpu-usage-audit"),
    "export": ("gua.cli.export", "print the history since a revision, for a program to keep"),
    "demo": ("gua.cli.demo", "record a made-up day without a GPU and report on it"),
    "config": ("gua.cli.config", "check or show the settings; `config --help` lists them all"),
    "completion": ("gua.cli.completion", "print what a shell needs to complete this program's words"),
    "version": ("gua.cli.version", "print the version"),
}


# What writing to stdout ends with when its device is full, broken or not open for writing.
_OUTPUT_ERRORS = (errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG, errno.EDQUOT)


# A URL's name and password, wherever the password ends.
_PASSWORD = re.compile(r"(://[^\s:/?#@]*:)\S+(?=@)")


class _Parser(argparse.ArgumentParser):
    """Its errors repeat what was typed, but no password of a URL in it: they end up in the mails of cron."""

    def error(self, message: str) -> NoReturn:
        super().error(_PASSWORD.sub(r"\1***", message))


def build_parser(
    program: str, commands: Mapping[str, tuple[str, str]], chosen: Optional[str]
) -> argparse.ArgumentParser:
    """The parser; only `chosen` gets its options, because only its module is imported."""
    parser = _Parser(prog=program, description="Which GPU time was worked, held without work, free, or not seen.")
    parser.add_argument("--version", action="version", version=f"{program} {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module, summary) in commands.items():
        command = subparsers.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name == chosen:
            loaded = importlib.import_module(module)
            loaded.configure(command)
            command.set_defaults(run=loaded.run)
    return parser


def run_command(
    program: str,
    commands: Mapping[str, tuple[str, str]],
    argv: Sequence[str],
    settle: Callable[[argparse.Namespace], object] = lambda options: None,
) -> int:
    """Parse, run one command, and give its exit status. Our own errors become one line on stderr.

    settle: given the options before the command runs, to fill in what the command line leaves open.
    """
    if "_ARGCOMPLETE" in os.environ:
        from gua.cli.completion import answer, typed_command  # only a TAB needs it

        answer(lambda: build_parser(program, commands, typed_command(commands, os.environ)))
    _make_streams_safe()
    chosen = next((word for word in argv if not word.startswith("-")), None)
    options = argparse.Namespace()
    try:
        build_parser(program, commands, chosen).parse_args(argv, namespace=options)
        settle(options)
        status = int(options.run(options))
        sys.stdout.flush()  # here, where it may still fail with a word
        return status
    except GuaError as exc:
        sys.stderr.write(f"{program}: {shown(str(exc), 1000)}\n")
        with contextlib.suppress(OSError):
            emit_error(exc, getattr(options, "frame", None))
            sys.stdout.flush()
        return int(exc.exit_status)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _silence_stdout()  # the reader (head, less) went away
        return int(ExitStatus.OK)
    except Exception as exc:  # noqa: BLE001 - the one last catch: a user gets a line and a file, never a traceback
        if isinstance(exc, OSError) and exc.errno in _OUTPUT_ERRORS and exc.filename is None:
            _silence_stdout()
            sys.stderr.write(f"{program}: the result cannot be written: {exc.strerror}\n")
            return int(ExitStatus.FAILED)
        sys.stderr.write(f"{program}: this is a defect of ours; please report it with {_save_traceback(exc)}\n")
        return int(ExitStatus.FAILED)


def _make_streams_safe() -> None:
    """Let nothing that is printed fail for its letters, or because the caller closed the stream."""
    with contextlib.suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass  # it takes the lowest free number, which was a closed stream's
        os.close(number)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - as long as the program
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _silence_stdout() -> None:
    """Keep the interpreter from complaining when it flushes at exit."""
    with contextlib.suppress(OSError), open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _save_traceback(error: Exception) -> str:
    """Path of a new private file that holds the traceback; the error in a line where none can be written."""
    import tempfile  # only a defect needs these
    import traceback

    try:
        with tempfile.NamedTemporaryFile("w", prefix="gua-defect-", suffix=".txt", delete=False) as file:
            traceback.print_exception(type(error), error, error.__traceback__, file=file)
    except OSError:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return shown(f"{type(error).__name__}: {error} ({os.path.basename(place.filename)}:{place.lineno})", 300)
    return file.name


def main(argv: Optional[Sequence[str]] = None) -> int:
    """The `gua` command. Returns its exit status."""
    return run_command("gua", COMMANDS, sys.argv[1:] if argv is None else argv)
