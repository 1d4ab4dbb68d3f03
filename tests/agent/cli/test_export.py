from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

from gua.export.stream import read_chunks
from tests.agent.export.exporting import NONCE
from tests.agent.running import PATIENCE_S, command, environment, run_gua
from tests.agent.store.opened import writing
from tests.agent.store.ticks import MONDAY, card, tick


def made(home: Path, ticks: int = 20) -> None:
    with writing(home / "gua.db") as writer:
        for n in range(ticks):
            writer.write_tick(tick(MONDAY + n * 30_000, card(f"GPU-{n}")))


def export(home: Path, *words: str, **streams: int) -> subprocess.CompletedProcess[bytes]:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    line = command("export", *words)
    return subprocess.run(line, env=environment(home), timeout=PATIENCE_S, check=False, **streams)  # type: ignore[call-overload]


def test_an_export_goes_to_stdout_framed_by_the_callers_nonce(tmp_path: Path) -> None:
    made(tmp_path)
    done = export(tmp_path, "--since-rev", "0", "--frame", NONCE)
    assert (done.returncode, done.stderr) == (0, b"")
    (tmp_path / "x").write_bytes(done.stdout)
    with (tmp_path / "x").open("rb") as file:
        (chunk,) = read_chunks(file, NONCE)
    assert len(chunk.tables["sample"].rows) == 20
    assert chunk.header["hostname"] == "host-a"


def test_what_cannot_be_exported_is_one_line(tmp_path: Path) -> None:
    missing = run_gua(tmp_path, "export", "--since-rev", "0")
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 2)
    made(tmp_path)
    for words in (["--since-rev", "-1"], ["--since-rev", "9", "--until-rev", "8"], [], ["--since-rev", "x"]):
        assert export(tmp_path, *words).returncode == 2


def test_a_terminal_is_spared(tmp_path: Path) -> None:
    made(tmp_path)
    primary, terminal = pty.openpty()
    done = export(tmp_path, "--since-rev", "0", stdout=terminal)
    os.close(terminal)
    os.close(primary)
    assert done.returncode == 2
    assert b"not text" in done.stderr


def test_stdout_that_closes_ends_it_with_a_line_and_status_1(tmp_path: Path) -> None:
    made(tmp_path)
    reading, writing_end = os.pipe()
    os.close(reading)
    done = export(tmp_path, "--since-rev", "0", stdout=writing_end)
    os.close(writing_end)
    assert done.returncode == 1
    assert b"stdout was closed before the end" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_full_device_is_said(tmp_path: Path) -> None:
    made(tmp_path)
    with open("/dev/full", "wb") as full:
        done = export(tmp_path, "--since-rev", "0", stdout=full.fileno())
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
