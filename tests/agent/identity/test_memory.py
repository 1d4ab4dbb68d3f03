from pathlib import Path

import pytest

from gua.identity.memory import ProcessMemory
from gua.identity.proc import ProcFs
from tests.agent.identity.trees import add_process, make_procfs


def owner(memory: ProcessMemory, pid: int = 42) -> object:
    facts = memory.look([pid])[pid]
    return None if facts is None else facts.owner_uid


def settled(root: Path) -> ProcessMemory:
    """One that has read the process in full twice, so that a glance is enough."""
    memory = ProcessMemory(ProcFs(root))
    assert (owner(memory), owner(memory)) == (1001, 1001)
    return memory


def test_a_process_that_stays_the_same_is_not_read_again(tmp_path: Path) -> None:
    root = make_procfs(tmp_path)
    add_process(root, 42, uid=1001)
    memory = settled(root)
    for name in ("status", "cgroup", "loginuid"):
        (root / "42" / name).unlink()
    assert owner(memory) == 1001


@pytest.mark.parametrize("change", [{"start": 101}, {"name": b"jupyter"}, {"parent": 2}])
def test_another_process_program_or_parent_is_seen_at_once(tmp_path: Path, change: dict[str, object]) -> None:
    root = make_procfs(tmp_path)
    add_process(root, 42, uid=1001)
    memory = settled(root)
    add_process(root, 42, uid=2002, **change)  # type: ignore[arg-type]  # one of its arguments
    assert owner(memory) == 2002


def test_what_a_glance_does_not_show_is_seen_later(tmp_path: Path) -> None:
    root = make_procfs(tmp_path)
    add_process(root, 42, uid=1001)
    memory = settled(root)
    add_process(root, 42, uid=2002)
    assert [owner(memory) for _ in range(10)] == [1001] * 9 + [2002]


def test_a_young_process_is_read_in_full_twice(tmp_path: Path) -> None:
    root = make_procfs(tmp_path)
    add_process(root, 42, uid=0)
    memory = ProcessMemory(ProcFs(root))
    assert owner(memory) == 0
    add_process(root, 42, uid=1001)
    assert owner(memory) == 1001


def test_a_process_that_is_gone_is_not_remembered(tmp_path: Path) -> None:
    root = make_procfs(tmp_path)
    add_process(root, 42, uid=1001)
    memory = settled(root)
    (root / "42/stat").unlink()
    assert owner(memory) is None
    memory.look([])
    add_process(root, 42, uid=2002)
    assert owner(memory) == 2002
