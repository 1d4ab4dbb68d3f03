"""`gua top` in a real terminal: keys, size, and how it gives the terminal back."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.running import PATIENCE_S, environment
from tests.agent.top.terminal import CURSOR, OTHER_SCREEN, OWN_SCREEN, Terminal, terminal

pytestmark = pytest.mark.processes

TOP = ("-m", "gua", "top", "--fake", "--tz", "UTC", "--interval", "1h")
CRASHING = """
import sys
from gua.cli.main import main
from gua.top import live
calls = []
def text(lines, made=live._text):
    calls.append(lines)
    if len(calls) > 1:
        raise RuntimeError("broken on purpose")
    return made(lines)
live._text = text
sys.exit(main(["top", "--fake", "--interval", "1h"]))
"""


def drawn(one: Terminal) -> bool:
    return any("q quit" in line for line in one.frame)


def cards(one: Terminal) -> list[str]:
    return [line for line in one.frame if line[:3].strip().isdecimal() and " W" in line]


def assert_given_back(one: Terminal, modes: list[object]) -> None:
    assert one.modes() == modes
    assert one.output.rindex(OWN_SCREEN) > one.output.rindex(OTHER_SCREEN)
    assert one.output.rindex(CURSOR) > one.output.rindex("\x1b[?25l")


def test_it_shows_every_card_its_holders_and_the_free_ones_and_q_ends_it(tmp_path: Path) -> None:
    with terminal(tmp_path, *TOP) as one:
        modes = one.modes()
        one.wait_until(drawn)
        assert one.modes() != modes
        assert [line[:2].strip() for line in cards(one)] == list("01234567")
        assert any(line.startswith("Free: ") for line in one.frame)
        assert any("(pid " in line for line in one.frame)
        one.type("q")
        assert one.wait_for_end() == 0
        assert_given_back(one, modes)


def test_s_changes_the_order_and_h_hides_and_shows_holders(tmp_path: Path) -> None:
    with terminal(tmp_path, *TOP) as one:
        one.wait_until(drawn)
        for sort in ("state", "memory", "utilisation", "index"):
            one.type("s")
            one.wait_until(lambda now, sort=sort: f"(by {sort})" in now.frame[-1])  # type: ignore[misc]
            assert len(cards(one)) == 8
            if sort == "utilisation":
                shares = [int(line.split(" %")[0].split()[-1]) for line in cards(one)]
                assert shares == sorted(shares, reverse=True)
        one.type("h")
        one.wait_until(lambda now: "h show" in now.frame[-1])
        assert not any("(pid " in line for line in one.frame)
        one.type("h")
        one.wait_until(lambda now: "h hide" in now.frame[-1])
        assert any("(pid " in line for line in one.frame)


def test_it_follows_the_window_smaller_and_larger(tmp_path: Path) -> None:
    with terminal(tmp_path, *TOP) as one:
        one.wait_until(drawn)
        one.resize(50, 8)
        one.wait_until(lambda now: drawn(now) and len(now.frame) == 8 and max(map(len, now.frame)) <= 50)
        assert "more lines" in one.frame[-2]
        one.resize(140, 50)
        one.wait_until(lambda now: drawn(now) and len(cards(now)) == 8 and max(map(len, now.frame)) > 80)
        one.type("q")
        assert one.wait_for_end() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back(tmp_path: Path, number: signal.Signals) -> None:
    with terminal(tmp_path, *TOP) as one:
        modes = one.modes()
        one.wait_until(drawn)
        one.process.send_signal(number)
        assert one.wait_for_end() == 128 + number
        assert_given_back(one, modes)


def test_ctrl_c_typed_is_the_signal_and_other_keys_are_nothing(tmp_path: Path) -> None:
    with terminal(tmp_path, *TOP) as one:
        modes = one.modes()
        one.wait_until(drawn)
        one.type("x\x1b[A\x1a")  # a letter, an arrow, Ctrl-Z
        one.type("h")
        one.wait_until(lambda now: "h show" in now.frame[-1])
        one.type("\x03")
        assert one.wait_for_end() == 128 + signal.SIGINT
        assert_given_back(one, modes)


def test_a_crash_gives_the_terminal_back_and_is_told_in_one_line(tmp_path: Path) -> None:
    with terminal(tmp_path, "-c", CRASHING, TMPDIR=str(tmp_path)) as one:
        modes = one.modes()
        one.wait_until(drawn)
        one.type("h")
        assert one.wait_for_end() == 1
        assert_given_back(one, modes)
        assert "a defect of ours" in one.output.rpartition(OWN_SCREEN)[2]


@pytest.mark.parametrize("more", [{"NO_COLOR": "1"}, {"TERM": "vt100"}])
def test_without_colours_no_colour_is_written(tmp_path: Path, more: dict[str, str]) -> None:
    with terminal(tmp_path, *TOP, **more) as one:
        one.wait_until(drawn)
        assert "\x1b[3" not in one.output


def test_a_terminal_of_ascii_gets_ascii(tmp_path: Path) -> None:
    with terminal(tmp_path, *TOP, PYTHONIOENCODING="ascii") as one:
        one.wait_until(drawn)
        assert one.output.isascii()
        assert any("#" in line for line in cards(one))


@pytest.mark.parametrize("more", [{}, {"TERM": "dumb"}])
def test_where_nothing_can_be_redrawn_there_is_one_plain_frame(tmp_path: Path, more: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, *TOP],
        env=environment(tmp_path, PYTHONIOENCODING="utf-8", **more),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("gua top  demo")
    assert "\x1b" not in done.stdout
    assert "q quit" not in done.stdout


def test_a_dumb_terminal_gets_one_plain_frame(tmp_path: Path) -> None:
    with terminal(tmp_path, *TOP, TERM="dumb") as one:
        assert one.wait_for_end() == 0
        assert "\x1b" not in one.output
        assert "Free: " in one.output
