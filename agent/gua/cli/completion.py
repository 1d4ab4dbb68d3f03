"""`completion bash|zsh|fish`: the script that lets a shell complete our commands, and the answers to it.

    bash    eval "$(gua completion bash)"                                in ~/.bashrc
    zsh     eval "$(gua completion zsh)"                                 in ~/.zshrc, after compinit
    fish    gua completion fish > ~/.config/fish/completions/gua.fish    once

The shell then runs the program itself with `_ARGCOMPLETE` set; only the command being typed is imported. `gua-fleet`
has the same command.
"""

from __future__ import annotations

import argparse
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


def typed_command(commands: Mapping[str, tuple[str, str]], environ: Mapping[str, str]) -> Optional[str]:
    """The command whose options are being typed; None while its own name is."""
    line = environ.get("COMP_LINE", "")[: int(environ.get("COMP_POINT") or 1 << 16)]
    words = line.split()[1:]
    if words and not line[-1:].isspace():
        words.pop()
    chosen = next((word for word in words if not word.startswith("-")), None)
    return chosen if chosen in commands else None


def answer(make_parser: Callable[[], argparse.ArgumentParser]) -> None:
    """Answer the shell and end the process; returns where nobody asked, or the library is missing."""
    try:
        import argcomplete
    except ImportError:
        return
    argcomplete.autocomplete(make_parser(), always_complete_options="long")
