from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gua_fleet.cli.main import main


@dataclass(frozen=True)
class Done:
    """What a command left: its exit status and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Done]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`gua-fleet ARGUMENTS` in `tmp_path`, without a process of its own: only the hosts' agents are real ones."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "GUA_FLEET_HOSTS", "GUA_FLEET_CONFIG"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> Done:
        capsys.readouterr()
        try:
            status = main(arguments)
        except SystemExit as exc:  # what argparse refuses
            status = int(exc.code or 0)
        done = Done(status, *capsys.readouterr())
        assert "defect" not in done.err, done.err
        return done

    return run
