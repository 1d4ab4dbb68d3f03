"""`completion bash|zsh|fish`: what a shell needs to complete the words of `gua` and of `gua-fleet`. Shared by both."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from typing import Optional

from gua.errors import ExitStatus, GuaError

SHELLS = ("bash", "zsh", "fish")


def configure(parser: argparse.ArgumentParser) -> None:
    """Which shell."""
    parser.add_argument("shell", choices=SHELLS, help="the shell; put what is printed into its start-up file")
    parser.set_defaults(program=parser.prog.split()[0])


def run(options: argparse.Namespace) -> int:
    """Print the shell's function. Raises GuaError where the library that answers it is missing."""
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError as exc:
        raise GuaError("completion needs argcomplete: pip install argcomplete") from exc
    sys.stdout.write(shellcode([options.program], shell=options.shell) + "\n")
    return int(ExitStatus.OK)


def asked_command(commands: Mapping[str, object], environ: Mapping[str, str] = os.environ) -> Optional[str]:
    """The command on the line that is being completed, so that only its module is loaded."""
    line = environ.get("COMP_LINE", "")[: _point(environ)]
    return next((word for word in line.split()[1:] if word in commands), None)


def answer(make_parser: Callable[[], argparse.ArgumentParser]) -> None:
    """Answer the shell and end the process; returns where nobody asked, or the library is missing."""
    try:
        import argcomplete
    except ImportError:
        return
    argcomplete.autocomplete(make_parser(), always_complete_options="long")


def _point(environ: Mapping[str, str]) -> Optional[int]:
    point = environ.get("COMP_POINT", "")
    return int(point) if point.isdecimal() else None
