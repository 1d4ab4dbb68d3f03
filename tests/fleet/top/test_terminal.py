"""`gua-fleet top` in a real terminal, with a real sshd."""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fleet.cli.reporting import reporting_body, write_state
from tests.fleet.ssh.sshd import REPOSITORY, Keys, Sshd, write_agent

pytestmark = pytest.mark.processes
PATIENCE_S = 90.0
TAKEN, GIVEN_BACK = "\x1b[?1049h", "\x1b[?1049l"
SHOWN_AGAIN = "\x1b[?25h"


class Watching:
    """The program in a terminal of 80x24 that is its own; `text` is all it wrote."""

    def __init__(self, folder: Path, *arguments: str, first_on_path: str = "") -> None:
        self.master, slave = pty.openpty()
        self.resize(80, 24)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        ours = [str(REPOSITORY / part) for part in ("agent", "fleet")]
        path = os.pathsep.join([first_on_path, *ours] if first_on_path else ours)
        more = {"PYTHONPATH": path, "HOME": str(folder), "TERM": "xterm", "XDG_STATE_HOME": "", "XDG_CACHE_HOME": ""}
        more |= {"COLUMNS": "70", "LINES": "20"}  # as a shell that exports them does, once
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gua_fleet", "top", "--every", "200ms", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env={**os.environ, **more},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - the child has one thread
        )
        self.text = ""

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def until(self, done: Callable[[str], object], start: int = 0) -> str:
        """Read until `done` of what was written from `start` on. Fails with what there was."""
        end_s = time.monotonic() + PATIENCE_S
        while not done(self.text[start:]):
            assert time.monotonic() < end_s, self.text[start:][-3000:]
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self.master, 65536).decode("utf-8", "replace")
                except OSError:
                    break
        return self.text[start:]

    def press(self, keys: str) -> int:
        """Press keys; gives how much had been written."""
        written = len(self.text)
        os.write(self.master, keys.encode())
        return written

    def ended(self) -> int:
        """The exit status; what was written last is read meanwhile, or it could not end."""
        self.until(lambda text: self.process.poll() is not None)
        return self.process.wait(PATIENCE_S)

    def is_given_back(self) -> bool:
        shown = self.text.rfind(GIVEN_BACK) > self.text.rfind(TAKEN) and SHOWN_AGAIN in self.text
        return shown and termios.tcgetattr(self.slave) == self.before

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait(PATIENCE_S)
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def server(tmp_path: Path, keys: Keys) -> Iterator[Sshd]:
    with Sshd(tmp_path / "sshd", keys) as running:
        yield running


@pytest.fixture
def fleet(tmp_path: Path, keys: Keys, server: Sshd) -> Path:
    """An inventory of two hosts behind one sshd; what their cards do is in their state files."""
    known = tmp_path / "known_hosts"
    known.write_text(server.known_line())
    hosts = {}
    for name in ("gpu01", "gpu02"):
        write_state(tmp_path, name, [{"state": "active"}] * 4)
        write_agent(tmp_path / name / "gua", reporting_body(tmp_path, name))
        hosts[name] = {"gua_command": str(tmp_path / name / "gua")}
    variables = {
        "ansible_host": "127.0.0.1",
        "ansible_port": server.port,
        "ansible_user": getpass.getuser(),
        "ansible_ssh_private_key_file": str(keys.client),
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={known} -o GlobalKnownHostsFile=none",
    }
    (tmp_path / "inventory.yml").write_text(json.dumps({"all": {"vars": variables, "hosts": hosts}}))
    return tmp_path


@pytest.fixture
def watching(fleet: Path) -> Iterator[Watching]:
    watch = Watching(fleet)
    yield watch
    watch.close()


def test_it_shows_what_cards_do_follows_changes_keys_and_size_and_ends_with_q(watching: Watching, fleet: Path) -> None:
    watching.until(lambda text: "8 active" in _plain(text))
    write_state(fleet, "gpu02", [{"state": "truly-idle"}] * 4)
    shown = watching.until(lambda text: "4 truly-idle" in _plain(text), len(watching.text))
    assert "gpu01" in shown
    (fleet / "gpu02" / "gua").rename(fleet / "gpu02" / "away")
    written = watching.until(lambda text: "agent-missing" in _plain(text), len(watching.text))
    assert "answered" in _plain(written)
    (fleet / "gpu02" / "away").rename(fleet / "gpu02" / "gua")
    watching.until(lambda text: "2 answered" in _plain(text), len(watching.text))
    watching.until(lambda text: "by idle-held" in _plain(text), watching.press("s"))
    start = len(watching.text)
    watching.resize(40, 10)
    watching.process.send_signal(signal.SIGWINCH)
    watching.until(lambda text: "q: quit  s: by idle-held" in _plain(text) and "8 █4" in _plain(text), start)
    watching.press("q")
    assert watching.ended() == 0
    assert watching.is_given_back()


@pytest.mark.parametrize("how", ["\x03", signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_terminal_is_given_back_however_it_ends(watching: Watching, how: str | signal.Signals) -> None:
    watching.until(lambda text: "8 active" in _plain(text))
    if isinstance(how, str):
        watching.press(how)
    else:
        watching.process.send_signal(how)
    assert watching.ended() == 130
    assert watching.is_given_back()
    assert "Traceback" not in watching.text


def test_a_terminal_that_is_closed_ends_it(watching: Watching) -> None:
    watching.until(lambda text: "8 active" in _plain(text))
    os.close(watching.slave)
    os.close(watching.master)
    watching.master, watching.slave = pty.openpty()
    assert watching.process.wait(PATIENCE_S) in (0, 130)


def test_ctrl_z_gives_the_terminal_back_and_fg_takes_it_again(watching: Watching, fleet: Path) -> None:
    watching.until(lambda text: "8 active" in _plain(text))
    watching.press("\x1a")
    watching.until(lambda text: _state_of(watching.process.pid) == "T")
    watching.until(lambda text: watching.is_given_back())
    write_state(fleet, "gpu02", [{"state": "truly-idle"}] * 4)
    start = len(watching.text)
    watching.process.send_signal(signal.SIGCONT)
    watching.until(lambda text: TAKEN in text and "4 truly-idle" in _plain(text), start)
    watching.press("q")
    assert watching.ended() == 0
    assert watching.is_given_back()


def test_a_connection_that_is_cut_is_dialled_again(watching: Watching, fleet: Path, server: Sshd) -> None:
    watching.until(lambda text: "8 active" in _plain(text))
    server.end_sessions()
    write_state(fleet, "gpu01", [{"state": "truly-idle"}] * 4)
    write_state(fleet, "gpu02", [{"state": "truly-idle"}] * 4)
    watching.until(lambda text: "8 truly-idle" in _plain(text), len(watching.text))
    watching.press("q")
    assert watching.ended() == 0


@pytest.mark.parametrize("broken", ["gua_fleet.top.board.Board.rows", "gua_fleet.ssh.keep.KeptFleet.ask"])
def test_a_defect_gives_the_terminal_back_and_is_one_line(
    fleet: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """A module that Python loads at its start breaks the program in the thread that shows, or in the one that asks."""
    module, name, method = broken.rsplit(".", 2)
    (fleet / "site").mkdir()
    (fleet / "site" / "sitecustomize.py").write_text(
        f"import {module} as module\nfrom itertools import count\nsound, calls = module.{name}.{method}, count()\n"
        "def fails(*arguments, **more):\n    if next(calls) == 2:\n        raise RuntimeError('made up')\n"
        f"    return sound(*arguments, **more)\nmodule.{name}.{method} = fails\n"
    )
    watch = Watching(fleet, first_on_path=str(fleet / "site"))
    try:
        assert watch.ended() == 1
        assert watch.is_given_back()
        assert "this is a defect of ours" in watch.text[watch.text.rfind(GIVEN_BACK) :]
        assert "Traceback" not in watch.text
    finally:
        watch.close()


def _state_of(pid: int) -> str:
    """The letter that the kernel has for what the process does; T: stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _plain(text: str) -> str:
    """Without what moves the cursor and sets colours."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
