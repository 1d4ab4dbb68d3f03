import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from gua.daemon.record import DaemonRecord, own_record, parse_record, read_start_ticks
from gua.host import read_machine_id

TEXTS = st.text(max_size=40)


@given(st.builds(DaemonRecord, st.integers(1, 2**22), st.none() | st.integers(0, 2**60), *[TEXTS] * 5))
def test_a_record_survives_its_file(record: DaemonRecord) -> None:
    assert parse_record(record.to_text().encode("utf-8", "surrogatepass")) == record


@given(st.binary(max_size=200))
def test_whatever_is_in_the_file_is_a_record_or_none(raw: bytes) -> None:
    found = parse_record(raw)
    assert found is None or found.pid >= 1


def test_what_is_no_pid_file() -> None:
    for raw in (b"", b"\n", b"-1\n", b"0\n", b"12x\n", b"1.5", b"99999999999\n", b"\xff\xfe", "\u0664\u0667".encode()):
        assert parse_record(raw) is None, raw


def test_a_pid_alone_is_a_record_of_which_nobody_can_say_that_it_lives() -> None:
    for rest in ("", "\n", "\n[1, 2]\n", "\n{broken", '\n{"start_ticks": "7", "boot_id": 3}\n'):
        record = parse_record(f"{os.getpid()}{rest}".encode())
        assert record == DaemonRecord(os.getpid())
        assert not record.is_alive()


def test_only_the_very_process_is_alive(tmp_path: Path) -> None:
    mine = own_record(tmp_path / "gua.db", {})
    assert mine.is_alive()
    assert mine.unit == ""
    assert not replace(mine, start_ticks=(mine.start_ticks or 0) + 1).is_alive()  # its pid is another's by now
    assert not replace(mine, boot_id="before").is_alive()
    elsewhere = replace(mine, machine_id=f"not {read_machine_id()}", host=f"not-{socket.gethostname()}")
    assert not elsewhere.is_of_this_host()
    assert not elsewhere.is_alive()


def test_a_process_that_ended_has_no_start_even_before_it_is_reaped() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert read_start_ticks(child.pid) is not None
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert read_start_ticks(child.pid) is None
    child.communicate()
    assert read_start_ticks(child.pid) is None
