"""What is remembered of hosts between runs, and files that are whole or not there."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from gua.errors import GuaError
from gua_fleet.last_seen import load_seen, save_seen, state_path
from gua_fleet.model import Host, HostResult, Outcome, Seen
from gua_fleet.write_file import write_atomically
from tests.documents import NOW, card, report, states

MIG = {"parent_uuid": "GPU-p", "profile": "1g.10gb"}
DOCUMENT = report(
    [
        card("GPU-a", states(60)),
        card("GPU-b", states(60), name="NVIDIA L4"),
        card("GPU-gone", states(60), retired_at=NOW),
        card("MIG-1", states(60), mig=MIG),
        card("MIG-2", states(60), mig=MIG),
    ]
)


def answered(name: str, **fields: Any) -> HostResult:
    return HostResult(Host(name, name, **fields), Outcome.OK, document=DOCUMENT)


def test_host_that_answered_is_remembered_and_one_that_did_not_keeps_what_was_known(tmp_path: Path) -> None:
    path = tmp_path / "state" / "last-seen.json"
    save_seen(path, [answered("a"), answered("b")])
    save_seen(path, [answered("a"), HostResult(Host("b", "b"), Outcome.UNREACHABLE)])
    seen = Seen(NOW, 3, {"NVIDIA H100 80GB HBM3": 1, "NVIDIA L4": 1})
    assert load_seen(path, [Host("a", "a"), Host("b", "b"), Host("c", "c")]) == {"a": seen, "b": seen}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_other_machine_of_the_same_name_is_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "last-seen.json"
    save_seen(path, [answered("gpu01", gua_command=("/demo/gua",))])
    assert load_seen(path, [Host("gpu01", "10.0.0.1")]) == {}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"version": 2, "hosts": {"a ssh a ": {"at": "2026-03-02T12:00:10Z", "cards": 1, "models": {}}}}',
        '{"version": 1, "hosts": []}',
        '{"version": 1, "hosts": {"a ssh a ": 7}}',
        '{"version": 1, "hosts": {"a ssh a ": {"at": "soon", "cards": 1, "models": {}}}}',
        '{"version": 1, "hosts": {"a ssh a ": {"at": "2026-03-02T12:00:10Z", "cards": -1, "models": {}}}}',
        '{"version": 1, "hosts": {"a ssh a ": {"at": "2026-03-02T12:00:10Z", "cards": 1, "models": {"L4": "x"}}}}',
    ],
)
def test_broken_memory_is_none_and_is_written_anew(tmp_path: Path, content: str) -> None:
    path = tmp_path / "last-seen.json"
    path.write_text(content)
    assert load_seen(path, [Host("a", "a")]) == {}
    save_seen(path, [answered("a")])
    assert load_seen(path, [Host("a", "a")])["a"].cards == 3


def test_memory_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(GuaError, match="so hosts that answered are not remembered: "):
        save_seen(tmp_path / "file" / "last-seen.json", [answered("a")])


def test_state_path_is_where_xdg_says_unless_it_is_relative() -> None:
    assert state_path({"XDG_STATE_HOME": "/var/state"}) == Path("/var/state/gua-fleet/last-seen.json")
    assert state_path({"XDG_STATE_HOME": "state"}) == state_path({})


def test_file_is_replaced_whole_and_keeps_its_rights(tmp_path: Path) -> None:
    path, link = tmp_path / "report.html", tmp_path / "latest.html"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_atomically(link, b"new")
    assert (path.read_bytes(), link.is_symlink()) == (b"new", True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["latest.html", "report.html"]


def test_file_that_cannot_be_replaced_leaves_the_old_one_and_no_part(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_bytes(b"old")
    with pytest.raises(TypeError):
        write_atomically(path, "no bytes")  # type: ignore[arg-type]
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["report.html"])


def test_what_is_no_file_is_written_to() -> None:
    write_atomically(Path(os.devnull), b"x")
    assert not Path(os.devnull).is_file()


def test_memory_is_json_that_people_can_read(tmp_path: Path) -> None:
    path = tmp_path / "last-seen.json"
    save_seen(path, [answered("a", port=22)])
    assert json.loads(path.read_text())["hosts"].keys() == {"a ssh a 22"}
