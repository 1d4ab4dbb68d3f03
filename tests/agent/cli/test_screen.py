"""What can be written to where results go."""

from __future__ import annotations

import io

import pytest

from gua.cli.screen import read_screen


class Terminal(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def terminal(encoding: str = "utf-8") -> Terminal:
    return Terminal(io.BytesIO(), encoding=encoding)


def test_screen_of_a_pipe_has_its_own_width_and_no_colour() -> None:
    screen = read_screen(io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), {}, pipe_columns=100)
    assert (screen.width, screen.unicode, screen.colour) == (100, True, False)


@pytest.mark.parametrize(
    ("environ", "colour"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_screen_of_a_terminal_has_colour_unless_told_otherwise(environ: dict[str, str], colour: bool) -> None:
    assert read_screen(terminal(), environ).colour is colour


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_screen_that_cannot_write_blocks_says_so(encoding: str) -> None:
    assert read_screen(terminal(encoding), {}).unicode is False


def test_screen_wider_than_any_table_is_not_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert read_screen(terminal(), {}).width == 120
