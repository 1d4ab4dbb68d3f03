from pathlib import Path
from typing import Optional

import pytest

from gua.clock import SystemClock
from gua.identity.accounts import AccountFiles, Accounts, SubordinateRange, read_accounts
from gua.identity.proc import ProcFs
from gua.identity.users import Identifier, build_identifier
from gua.model import ProcessIdentity, UserSource
from tests.agent.identity.trees import BOOT_ID, NO_LOGIN, add_process, make_procfs

ID = "4f5a" * 16
DOCKER = (f"0::/system.slice/docker-{ID}.scope",)
NAMES = {0: "root", 113: "gdm", 1001: "alice", 1002: "bob", 1003: "EXAMPLE\\carol", 150_000: "ldap-dave"}
UIDS = {**{name: uid for uid, name in NAMES.items()}, "dockremap": 990}
ACCOUNTS = Accounts(
    subordinate=(
        SubordinateRange("alice", range(100_000, 165_536)),
        SubordinateRange("1002", range(200_000, 265_536)),
        SubordinateRange("dockremap", range(300_000, 365_536)),
    )
)


def identifier(root: Path, *, trust: bool = False) -> Identifier:
    return Identifier(ProcFs(root), NAMES.get, UIDS.get, trust_pid_namespace=trust, accounts=lambda: ACCOUNTS)


def identify(root: Path, pid: int = 42) -> ProcessIdentity:
    return identifier(root).identify([pid])[pid]


@pytest.mark.parametrize(
    ("uid", "login", "cgroup", "user", "source", "number"),
    [
        (1001, NO_LOGIN, "/", "alice", UserSource.OWNER, 1001),
        (1001, 1002, "/", "alice", UserSource.OWNER, 1001),
        (1001, NO_LOGIN, f"/docker/{ID}", "alice", UserSource.OWNER, 1001),
        (1003, NO_LOGIN, "/", "EXAMPLE\\carol", UserSource.OWNER, 1003),
        (987_654, None, "/", "uid:987654", UserSource.OWNER, 987_654),
        (0, 1002, "/", "bob", UserSource.LOGINUID, 1002),
        (113, 1002, "/", "bob", UserSource.LOGINUID, 1002),
        (0, 1002, f"/docker/{ID}", "container:4f5a4f5a4f5a", UserSource.CONTAINER, None),
        (0, NO_LOGIN, f"/docker/{ID}", "container:4f5a4f5a4f5a", UserSource.CONTAINER, None),
        (0, None, "/lxc.payload.student-1/x", "container:student-1", UserSource.CONTAINER, None),
        (0, NO_LOGIN, "/user.slice/user-1001.slice/session-1.scope", "alice", UserSource.SLICE, 1001),
        (0, None, "/lxc.payload.web/user.slice/user-1001.slice/s.scope", "container:web", UserSource.CONTAINER, None),
        (301_001, None, "/lxc.payload.web/user.slice/user-1001.slice", "container:web", UserSource.CONTAINER, None),
        (0, 4_294_967_294, "/", "uid:4294967294", UserSource.LOGINUID, 4_294_967_294),
        (0, NO_LOGIN, "/user.slice/user-0.slice/session-1.scope", "root", UserSource.SYSTEM, 0),
        (100_999, NO_LOGIN, f"/machine.slice/libpod-{ID}.scope", "alice", UserSource.SUBUID, 1001),
        (200_000, NO_LOGIN, "/", "bob", UserSource.SUBUID, 1002),
        (150_000, NO_LOGIN, "/", "ldap-dave", UserSource.OWNER, 150_000),
        (300_001, NO_LOGIN, f"/docker/{ID}", "container:4f5a4f5a4f5a", UserSource.CONTAINER, None),
        (0, NO_LOGIN, "/system.slice/cron.service", "root", UserSource.SYSTEM, 0),
        (113, NO_LOGIN, "/", "gdm", UserSource.SYSTEM, 113),
        (114, NO_LOGIN, "/", "uid:114", UserSource.SYSTEM, 114),
        (65534, NO_LOGIN, "/", "uid:65534", UserSource.SYSTEM, 65534),
        (61999, NO_LOGIN, "/", "uid:61999", UserSource.SYSTEM, 61999),
    ],
)
def test_the_user_of_a_process(
    tmp_path: Path, uid: int, login: Optional[int], cgroup: str, user: str, source: UserSource, number: Optional[int]
) -> None:
    root = make_procfs(tmp_path)
    add_process(root, 42, uid=uid, login=login, cgroups=(f"0::{cgroup}",))
    found = identify(root)
    assert (found.user, found.user_source, found.uid) == (user, source, number)
    assert (found.owner_uid, found.login_uid) == (uid, None if login == NO_LOGIN else login)


@pytest.mark.parametrize("engine", [b"dockerd", b"containerd-shim", b"conmon", b"crio", b"lxc-start"])
def test_what_a_container_engine_started_is_not_whoever_restarted_the_engine(tmp_path: Path, engine: bytes) -> None:
    root = make_procfs(tmp_path)
    add_process(root, 1, uid=0, parent=0, name=b"systemd")
    add_process(root, 5, uid=0, login=1001, name=engine)
    add_process(root, 6, uid=0, login=1001, parent=5, name=b"bash")
    add_process(root, 42, uid=0, login=1001, parent=6, cgroups=("0::/some/cgroup",))
    assert (identify(root).user, identify(root).user_source) == ("root", UserSource.SYSTEM)
    add_process(root, 42, uid=0, login=1001, parent=6, cgroups=DOCKER)
    found = identify(root)
    assert (found.user, found.container_id, found.login_uid) == ("container:4f5a4f5a4f5a", ID, 1001)


def test_the_key_holds_boot_and_start_so_a_reused_pid_is_another_process(tmp_path: Path) -> None:
    root = make_procfs(tmp_path)
    add_process(root, 42, uid=1001, start=100)
    first = identify(root)
    add_process(root, 42, uid=1002, start=900)
    second = identify(root)
    assert (first.boot_id, first.pid, first.start_ticks, first.user) == (BOOT_ID, 42, 100, "alice")
    assert (second.boot_id, second.pid, second.start_ticks, second.user) == (BOOT_ID, 42, 900, "bob")


def test_a_process_nobody_shows_is_unknown(tmp_path: Path) -> None:
    found = identify(make_procfs(tmp_path))
    assert (found.user, found.user_source, found.start_ticks) == ("unknown", UserSource.UNKNOWN, None)


def test_a_process_whose_status_is_hidden_is_unknown(tmp_path: Path) -> None:
    root = make_procfs(tmp_path)
    add_process(root, 42, login=None, cgroups=())
    (root / "42/status").unlink()
    assert (identify(root).user, identify(root).start_ticks) == ("unknown", 100)


@pytest.mark.parametrize(
    ("uid_map", "user"),
    [
        ("0 0 1\n998 998 1\n", "unknown"),
        ("0 0 4294967295\n", "uid:65534"),
        ("0 100000 65536\n", "uid:65534"),
        ("", "uid:65534"),
    ],
)
def test_a_uid_that_our_user_namespace_has_no_number_for_is_unknown(tmp_path: Path, uid_map: str, user: str) -> None:
    """The kernel shows every such process as uid 65534: else all people would be one, called nobody."""
    root = make_procfs(tmp_path)
    (root / "self/uid_map").write_text(uid_map)
    add_process(root, 42, uid=65534)
    assert identify(root).user == user


def test_in_a_foreign_namespace_pids_mean_nothing_unless_trusted(tmp_path: Path) -> None:
    root = make_procfs(tmp_path, namespace=4026532999)
    add_process(root, 42, uid=1001)
    assert identifier(root).identify([42])[42].user == "unknown"
    assert identifier(root).identify([42])[42].start_ticks is None
    assert identifier(root, trust=True).identify([42])[42].user == "alice"


@pytest.mark.parametrize(
    "cgroups",
    [
        ("11:devices:/slurm/uid_1001/job_12/step_0/task_0", "1:name=systemd:/system.slice/slurmd.service"),
        ("0::/system.slice/slurmstepd.scope/job_12/step_batch/user/task_0",),
        ("0::/system.slice/gpu07_slurmstepd.scope/job_12/step_extern/user/task_special",),
    ],
)
def test_a_slurm_step_has_no_login_and_is_its_owners_with_the_job_kept(
    tmp_path: Path, cgroups: tuple[str, ...]
) -> None:
    root = make_procfs(tmp_path)
    add_process(root, 42, uid=1001, cgroups=cgroups)
    found = identify(root)
    assert (found.user, found.user_source, found.login_uid, found.slurm_job) == ("alice", UserSource.OWNER, None, "12")


@pytest.mark.parametrize(
    "name",
    ["EXAMPLE\\alice", "bob@example.org", "příbor", "名前", "<script>", "-rf", "a b c", "x" * 64, "it's;$(reboot)"],
)
def test_any_account_name_is_kept_as_it_is(tmp_path: Path, name: str) -> None:
    root = make_procfs(tmp_path)
    add_process(root, 42, uid=1001)
    people = Identifier(ProcFs(root), {1001: name}.get, {}.get, accounts=lambda: ACCOUNTS)
    assert people.identify([42])[42].user == name


@pytest.mark.parametrize("name", [b"a) R 1 (", b"x) S 1 1", b"\x1b]0;x\x07<b>", b"\xff"])
def test_a_process_named_like_a_stat_line_is_its_owners(tmp_path: Path, name: bytes) -> None:
    root = make_procfs(tmp_path)
    add_process(root, 42, uid=1001, start=777, name=name)
    found = identify(root)
    assert (found.user, found.start_ticks, found.name) == ("alice", 777, name.decode("utf-8", "backslashreplace"))


def test_all_ids_are_kept_beside_the_user_they_did_not_decide(tmp_path: Path) -> None:
    root = make_procfs(tmp_path)
    cgroup = f"0::/system.slice/slurmstepd.scope/job_12/step_0/docker/{ID}"
    add_process(root, 42, uid=1001, login=1002, cgroups=(cgroup,))
    found = identify(root)
    assert (found.user, found.user_source, found.uid) == ("alice", UserSource.OWNER, 1001)
    assert (found.owner_uid, found.login_uid, found.container_id, found.slurm_job) == (1001, 1002, ID, "12")


def test_processes_hidden_by_hidepid_are_unknown(tmp_path: Path) -> None:
    """hidepid=2 shows no directory at all, hidepid=1 one whose files cannot be read."""
    root = make_procfs(tmp_path)
    (root / "43").mkdir()
    found = identifier(root).identify([42, 43])
    assert {identity.user_source for identity in found.values()} == {UserSource.UNKNOWN}


def test_the_slurm_job_is_recorded(tmp_path: Path) -> None:
    root = make_procfs(tmp_path)
    add_process(root, 42, cgroups=("0::/system.slice/slurmstepd.scope/job_12/step_0/user/task_0",))
    assert identify(root).slurm_job == "12"


def test_account_rules_come_from_the_host(tmp_path: Path) -> None:
    (tmp_path / "login.defs").write_text("# x\nUID_MIN\t\t  500\nUID_MAX 60000\n")
    (tmp_path / "subuid").write_text("alice:100000:65536\nbroken\n\n7:x:1\n1002:200000:10\n")
    accounts = read_accounts(tmp_path)
    assert (accounts.is_ordinary(500), accounts.is_ordinary(499), accounts.is_ordinary(65534)) == (True, False, False)
    assert accounts.subordinate_owner(165_535) == "alice"
    assert accounts.subordinate_owner(200_009) == "1002"
    assert accounts.subordinate_owner(165_536) is None


def test_changed_account_files_are_read_anew_and_others_are_not(tmp_path: Path) -> None:
    files = AccountFiles(tmp_path)
    assert files.read().subordinate_owner(100_000) is None
    (tmp_path / "subuid").write_text("alice:100000:65536\n")
    first = files.read()
    assert first.subordinate_owner(100_000) == "alice"
    assert files.read() is first
    (tmp_path / "subuid").write_text("bob:100000:65536\nalice:165536:65536\n")
    assert files.read().subordinate_owner(100_000) == "bob"


def test_missing_account_files_leave_the_usual_rules(tmp_path: Path) -> None:
    assert read_accounts(tmp_path / "none") == Accounts(uid_min=1000, subordinate=())


def test_the_real_host_names_this_very_process() -> None:
    import os
    import pwd

    found = build_identifier(Path("/proc"), SystemClock(), trust_pid_namespace=True).identify([os.getpid()])[
        os.getpid()
    ]
    assert found.owner_uid == os.getuid()
    if os.getuid() >= 1000:
        assert found.user == pwd.getpwuid(os.getuid()).pw_name
