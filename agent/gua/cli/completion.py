"""`gua completion`: the script that lets a shell complete our commands, and the answers to it.

    bash    eval "$(gua completion bash)"                                in ~/.bashrc
    zsh     eval "$(gua completion zsh)"                                 in ~/.zshrc, after compinit
    fish    gua completion fish > ~/.config/fish/completions/gua.fish    once

The shell then runs the program itself with `_ARGCOMPLETE` set; only the command being typed is imported.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from typing import Optional

from gua.errors import ExitStatus, GuaError

SHELLS = ("bash", "zsh", "fish")
ASKED = "_ARGCOMPLETE"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="bash and zsh: for eval; fish: for a file in its completions")


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    sys.stdout.write(script("gua", options.shell))
    return int(ExitStatus.OK)


def script(program: str, shell: str) -> str:
    """What a shell (one of SHELLS) has to read to complete `program`. Raises GuaError without argcomplete."""
    try:
        from argcomplete import shellcode  # type: ignore[attr-defined,unused-ignore]
    except ImportError as exc:
        raise GuaError("completion needs the package argcomplete: install it beside this program") from exc
    return str(shellcode([program], shell=shell)).strip() + "\n"


def answer(program: str, commands: Mapping[str, tuple[str, str]]) -> None:
    """Tell the shell what could come next, and end; return where nobody can tell."""
    from gua.cli.main import build_parser

    try:
        from argcomplete import autocomplete
    except ImportError:
        return
    autocomplete(build_parser(program, commands, typed_command(commands, os.environ)))


def typed_command(commands: Mapping[str, tuple[str, str]], environ: Mapping[str, str]) -> Optional[str]:
    """The command whose options are being typed; None while its own name is."""
    line = environ.get("COMP_LINE", "")[: int(environ.get("COMP_POINT") or 1 << 16)]
    words = line.split()[1:]
    if words and not line[-1:].isspace():
        words.pop()
    chosen = next((word for word in words if not word.startswith("-")), None)
    return chosen if chosen in commands else None
