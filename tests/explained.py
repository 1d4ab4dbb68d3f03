"""What the help of every command of both programs owes its reader."""

from __future__ import annotations

import argparse


def assert_explained(parser: argparse.ArgumentParser, name: str) -> None:
    """Every option of the command `name` says what it does, in words; `--json` comes with `--format`."""
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    actions = commands.choices[name]._actions
    assert [action.option_strings for action in actions if not action.help] == []
    options = {option for action in actions for option in action.option_strings}
    assert ("--json" in options) == ("--format" in options)
