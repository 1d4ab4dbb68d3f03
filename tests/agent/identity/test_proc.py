from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.identity.proc import ProcFs, Stat, parse_stat
from tests.agent.identity.trees import BOOT_ID, add_process, make_procfs, stat_line


def test_facts_of_a_process(tmp_path: Path) -> None:
    root = make_procfs(tmp_path)
    add_process(
        root, 42, uid=1001, login=1002, parent=7, start=555, cgroups=("0::/a", "1:name=systemd:/b:c", "rubbish")
    )
    facts = ProcFs(root).read_process(42)
    assert facts is not None
    assert (facts.pid, facts.start_ticks, facts.parent_pid, facts.name) == (42, 555, 7, "python3")
    assert (facts.owner_uid, facts.login_uid, facts.cgroups) == (1001, 1002, ("/a", "/b:c"))
    assert ProcFs(root).boot_id() == BOOT_ID


def test_nobody_logged_in_is_none_with_and_without_audit(tmp_path: Path) -> None:
    root = make_procfs(tmp_path)
    add_process(root, 42)
    add_process(root, 43, login=None)
    for pid in (42, 43):
        facts = ProcFs(root).read_process(pid)
        assert facts is not None
        assert facts.login_uid is None


def test_a_process_that_is_gone_is_none(tmp_path: Path) -> None:
    assert ProcFs(make_procfs(tmp_path)).read_process(42) is None


def test_a_process_replaced_while_it_is_read_is_none(tmp_path: Path) -> None:
    root = make_procfs(tmp_path)
    add_process(root, 42, start=100)

    class Reused(ProcFs):
        def _cgroups(self, pid: int) -> tuple[str, ...]:
            add_process(root, 42, start=900, uid=2002)
            return super()._cgroups(pid)

    assert Reused(root).read_process(42) is None


def test_ancestors_come_nearest_first_and_loops_end(tmp_path: Path) -> None:
    root = make_procfs(tmp_path)
    add_process(root, 1, parent=0, name=b"systemd")
    add_process(root, 5, parent=1, name=b"dockerd")
    add_process(root, 9, parent=5)
    add_process(root, 20, parent=21, name=b"a")
    add_process(root, 21, parent=20, name=b"b")
    procfs = ProcFs(root)
    leaf, looping = procfs.read_process(9), procfs.read_process(20)
    assert leaf is not None
    assert looping is not None
    assert list(procfs.ancestor_names(leaf)) == ["dockerd", "systemd"]
    assert len(list(procfs.ancestor_names(looping))) < 100


@pytest.mark.parametrize("name", [b"x) S 1 1", b"a) R 1 (", b"", b") ) )", b"\xff\xfe", "名前".encode()])
def test_a_name_may_look_like_the_rest_of_the_line(name: bytes) -> None:
    stat = parse_stat(stat_line(42, name, 7, 555))
    assert stat == Stat(name.decode("utf-8", "backslashreplace"), 7, 555)


@given(st.binary())
def test_rubbish_is_no_process(raw: bytes) -> None:
    parse_stat(raw)


@given(st.binary(max_size=15).filter(lambda name: b"\n" not in name), st.integers(0, 2**22), st.integers(0, 2**62))
def test_any_name_parses(name: bytes, parent: int, start: int) -> None:
    stat = parse_stat(stat_line(1, name, parent, start))
    assert stat is not None
    assert (stat.parent_pid, stat.start_ticks) == (parent, start)


def test_only_another_namespace_is_foreign(tmp_path: Path) -> None:
    assert not ProcFs(make_procfs(tmp_path / "host")).is_foreign_namespace()
    assert ProcFs(make_procfs(tmp_path / "box", namespace=4026532999)).is_foreign_namespace()
    assert not ProcFs(make_procfs(tmp_path / "bare", namespace=None)).is_foreign_namespace()


def test_our_own_process_is_read_from_the_real_proc() -> None:
    import os

    facts = ProcFs(Path("/proc")).read_process(os.getpid())
    assert facts is not None
    assert (facts.owner_uid, facts.parent_pid) == (os.getuid(), os.getppid())
