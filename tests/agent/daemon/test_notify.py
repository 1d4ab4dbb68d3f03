import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from gua.daemon.notify import Notifier


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """A service manager's socket, and its name as NOTIFY_SOCKET has it."""
    name = str(tmp_path / "notify") if request.param == "path" else f"@gua-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind("\0" + name[1:] if name.startswith("@") else name)
        channel.settimeout(10)
        yield channel, name


def test_systemd_hears_ready_alive_and_stopping(manager: tuple[socket.socket, str]) -> None:
    channel, name = manager
    notify = Notifier.from_environ({"NOTIFY_SOCKET": name})
    notify.ready()
    notify.alive("last tick ok\nREADY=0")
    notify.stopping()
    messages = [channel.recv(4096).decode() for _ in range(3)]
    assert messages == ["READY=1", "WATCHDOG=1\nSTATUS=last tick ok\\x0aREADY=0", "STOPPING=1"]


def test_without_a_manager_nothing_happens(tmp_path: Path) -> None:
    Notifier.from_environ({}).ready()
    Notifier.from_environ({"NOTIFY_SOCKET": str(tmp_path / "gone")}).ready()


@pytest.mark.parametrize(
    ("environ", "watchdog_s"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "60000000"}, 60.0),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": str(os.getpid())}, 60.0),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_watchdog_counts_only_when_it_is_ours(environ: dict[str, str], watchdog_s: object) -> None:
    assert Notifier.from_environ(environ).watchdog_s == watchdog_s


def test_a_watchdog_with_less_patience_than_a_tick_may_need_is_asked_for_more(
    manager: tuple[socket.socket, str],
) -> None:
    channel, name = manager
    notify = Notifier.from_environ({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "60000000"})
    notify.expect(40.0)
    notify.expect(90.0)
    assert notify.watchdog_s == 90.0
    notify.expect(90.0)
    notify.expect(40.0)
    assert notify.watchdog_s == 60.0
    notify.stopping()
    messages = [channel.recv(4096).decode() for _ in range(3)]  # and nothing in between
    assert messages == ["WATCHDOG_USEC=90000000", "WATCHDOG_USEC=60000000", "STOPPING=1"]
