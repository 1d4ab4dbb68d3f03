from pathlib import Path
from typing import Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.identity.mounts import Mount, mount_hint, parse_mounts
from gua.identity.proc import ProcFs
from gua.identity.users import Identifier
from gua.text import shown
from tests.agent.identity.trees import add_process, make_procfs, mount_line

ID = "4f5a" * 16
OVERLAY = mount_line("0:61", "/", "/", "overlay", "overlay")
# / on one disk, /home on a disk of its own, /data on a third, one user's home over NFS
HOST = (
    mount_line("8:1", "/", "/"),
    mount_line("8:2", "/", "/home"),
    mount_line("8:3", "/", "/data"),
    mount_line("0:44", "/", "/home/carol", "nfs4", "nas:/export/carol"),
    mount_line("8:1", "/var/lib/docker/volumes", "/srv/volumes"),
)


ACCOUNTS = {"alice", "bob", "carol"}


def hint(*mounts: str, host: tuple[str, ...] = HOST) -> Optional[str]:
    return mount_hint("\n".join((OVERLAY, *mounts)).encode(), "\n".join(host).encode(), ACCOUNTS.__contains__)


@pytest.mark.parametrize(
    ("device", "root", "point", "expected"),
    [
        ("8:2", "/alice/project", "/workspace", "/home/alice"),
        ("8:2", "/alice", "/home/jovyan", "/home/alice"),
        ("8:1", "/home/alice/x", "/x", "/home/alice"),
        ("8:3", "/users/bob/sets", "/sets", "/data/users/bob"),
        ("0:44", "/", "/root", "/home/carol"),
        ("0:44", "/thesis", "/root", "/home/carol"),
        ("8:2", "/alice/tmp//deleted", "/tmp", "/home/alice"),
        ("8:1", "/var/home/alice", "/x", "/var/home/alice"),
        ("9:9", "/export/homes/dan/x", "/x", "/export/homes/dan"),  # nowhere on the host: its own name for it
        ("8:2", "/", "/everybody", None),
        ("8:3", "/imagenet", "/home/alice", None),  # the container chose this mount point
        ("8:1", "/var/lib/docker/volumes/home/_data/home/x", "/data", None),
        ("8:1", "/var/lib/docker/containers/1/hosts", "/etc/hosts", None),
        ("8:1", "/a/b/c/d/home/alice", "/x", None),
        ("8:3", "/alice", "/x", "/data/alice"),
        ("8:1", "/mnt/nas/lab/bob/runs", "/x", "/mnt/nas/lab/bob"),
        ("8:1", "/scratch/project/alice", "/x", "/scratch/project/alice"),
        ("8:1", "/scratch/shared/a/b/alice", "/x", None),
        ("8:1", "/alice", "/x", None),  # people's directories lie in something
        ("8:1", "/opt/nobody-here", "/x", None),
        ("8:1", "/usr/share/alice", "/x", None),
    ],
)
def test_a_person_is_hinted_at_by_the_directory_on_the_host(
    device: str, root: str, point: str, expected: Optional[str]
) -> None:
    assert hint(mount_line(device, root, point)) == expected


def test_a_directory_service_is_asked_for_few_names_and_for_each_once() -> None:
    asked: list[str] = []

    def is_person(name: str) -> bool:
        asked.append(name)
        return False

    table = [mount_line("8:3", f"/{name}/{sub}", "/x") for name in map(str, range(1000)) for sub in "ab"]
    assert mount_hint("\n".join(table).encode(), HOST[2].encode(), is_person) is None
    assert 0 < len(asked) == len(set(asked)) <= 16


def test_several_directories_are_named_up_to_three() -> None:
    def mounts(*names: str) -> tuple[str, ...]:
        return tuple(mount_line("8:2", f"/{name}/{sub}", f"/m/{name}/{sub}") for name in names for sub in "xy")

    assert hint(*mounts("bob", "alice")) == "/home/alice, /home/bob"
    assert hint(*mounts("d", "a", "c")) == "/home/a, /home/c, /home/d"
    assert hint(*mounts("e", "d", "a", "c", "b")) == "/home/a, /home/b, /home/c and 2 more"


def test_what_the_kernel_escaped_is_undone_and_what_a_terminal_would_obey_is_not_shown() -> None:
    assert hint(mount_line("8:2", r"/my\040name\134x/a", "/x")) == r"/home/my name\x"
    assert hint(mount_line("8:2", "/\x1b[2Jalice/a", "/x")) == r"/home/\x1b[2Jalice"
    assert hint(mount_line("8:2", r"/a\012b/a", "/x")) == r"/home/a\x0ab"
    long = hint(mount_line("8:2", f"/{'a' * 250}/a", "/x"))
    assert long is not None
    assert len(long) == 64


def test_without_tables_there_is_no_hint() -> None:
    assert mount_hint(b"", b"") is None
    assert mount_hint(b"rubbish\n\n701 690 8:2", b"") is None


@given(st.binary(max_size=400), st.binary(max_size=400))
def test_no_table_is_too_odd(container: bytes, host: bytes) -> None:
    mount_hint(container, host)


@given(st.text(min_size=1).filter(lambda name: not set(name) & set("/ \n\\")))
def test_whatever_a_directory_is_called_the_hint_can_be_shown(name: str) -> None:
    escaped = name.encode("utf-8", "surrogatepass").replace(b"\r", rb"\015")
    found = mount_hint(b"1 2 8:2 /" + escaped + b" /x rw - ext4 /dev/sda1 rw", HOST[1].encode())
    assert found is not None
    assert found == shown(found)


def test_this_hosts_own_table_is_read_whole() -> None:
    table = Path("/proc/self/mountinfo").read_bytes()
    mounts = parse_mounts(table)
    assert len(mounts) == len(table.splitlines())
    assert any(isinstance(mount, Mount) and mount.point == "/" for mount in mounts)


def identifier(root: Path) -> Identifier:
    return Identifier(ProcFs(root), {1001: "alice"}.get, {}.get)


def test_only_a_containers_process_has_a_hint_and_it_charges_nobody(tmp_path: Path) -> None:
    root = make_procfs(tmp_path)
    add_process(root, 1, uid=0, mounts=HOST)
    mounts = (OVERLAY, mount_line("8:2", "/alice", "/workspace"))
    add_process(root, 42, uid=0, cgroups=(f"0::/docker/{ID}",), mounts=mounts)
    add_process(root, 43, uid=0, mounts=mounts)
    found = identifier(root).identify([42, 43])
    assert (found[42].mount_hint, found[42].user) == ("/home/alice", f"container:{ID[:12]}")
    assert (found[43].mount_hint, found[43].user) == (None, "uid:0")


def test_only_the_accounts_of_people_make_a_hint(tmp_path: Path) -> None:
    root = make_procfs(tmp_path)
    add_process(root, 1, uid=0, mounts=HOST)
    mounts = (mount_line("8:3", "/alice", "/a"), mount_line("8:3", "/mysql", "/b"), mount_line("8:3", "/sets", "/c"))
    add_process(root, 42, uid=0, cgroups=(f"0::/docker/{ID}",), mounts=mounts)
    people = Identifier(ProcFs(root), {}.get, {"alice": 1001, "mysql": 114}.get)
    assert people.identify([42])[42].mount_hint == "/data/alice"


def test_mounts_are_read_once_in_the_life_of_a_process(tmp_path: Path) -> None:
    root = make_procfs(tmp_path)
    add_process(root, 1, uid=0, mounts=HOST)
    alices, bobs = ((mount_line("8:2", f"/{name}", "/work"),) for name in ("alice", "bob"))
    add_process(root, 42, uid=0, cgroups=(f"0::/docker/{ID}",), mounts=alices)
    people = identifier(root)
    assert people.identify([42])[42].mount_hint == "/home/alice"
    (root / "42/mountinfo").write_text("")
    assert people.identify([42])[42].mount_hint == "/home/alice"
    add_process(root, 42, uid=0, start=900, cgroups=(f"0::/docker/{ID}",), mounts=bobs)
    assert people.identify([42])[42].mount_hint == "/home/bob"
