"""Who a process is charged to, and by which rule. The order is the design's, section 4, Identity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Optional

from gua.clock import Clock
from gua.identity.accounts import AccountFiles, Accounts, read_accounts
from gua.identity.containers import short_container_id
from gua.identity.memory import ProcessMemory
from gua.identity.mounts import mount_hint
from gua.identity.names import CachedLookup, look_up_name, look_up_uid
from gua.identity.proc import ProcessFacts, ProcFs
from gua.model import USER_UNKNOWN, ProcessIdentity, UserSource

# Names as the kernel keeps them, cut to 15 characters. What one of these started carries the login uid of whoever
# restarted the engine, so it says nothing about who runs the container.
_ENGINES = frozenset(
    {"dockerd", "dockerd-current", "docker-containe", "containerd", "containerd-shim", "conmon", "crio"}
    | {"podman", "buildkitd", "kubelet", "runc", "crun", "lxc-start", "lxc-execute", "lxd", "incusd", "systemd-nspawn"}
)

Named = tuple[str, UserSource, Optional[int]]


class Identifier:
    """Reads who the processes on the cards are. Never raises, never waits long."""

    def __init__(
        self,
        procfs: ProcFs,
        name_of: Callable[[int], Optional[str]],
        uid_of: Callable[[str], Optional[int]],
        *,
        trust_pid_namespace: bool = False,
        accounts: Callable[[], Accounts] = read_accounts,
    ) -> None:
        self._procfs = procfs
        self._memory = ProcessMemory(procfs)
        self._name_of = name_of
        self._uid_of = uid_of
        self._accounts = accounts
        self._boot_id = procfs.boot_id()
        self._hints: dict[tuple[int, int], Optional[str]] = {}  # of the containers' processes seen last time
        self._blind = procfs.is_foreign_namespace() and not trust_pid_namespace

    def identify(self, pids: Iterable[int]) -> Mapping[int, ProcessIdentity]:
        """An identity for every pid; user `unknown` where nothing can be read or pids mean nothing here."""
        accounts = self._accounts()
        looked = dict.fromkeys(pids) if self._blind else self._memory.look(pids)
        found = {pid: self._identify(pid, facts, accounts) for pid, facts in looked.items()}
        alive = {(identity.pid, identity.start_ticks) for identity in found.values()}
        self._hints = {key: hint for key, hint in self._hints.items() if key in alive}
        return found

    def _identify(self, pid: int, facts: Optional[ProcessFacts], accounts: Accounts) -> ProcessIdentity:
        if facts is None:
            return ProcessIdentity(self._boot_id, pid, None, "", USER_UNKNOWN, UserSource.UNKNOWN)
        user, source, uid = self._name_user(facts, accounts)
        return ProcessIdentity(
            boot_id=self._boot_id,
            pid=pid,
            start_ticks=facts.start_ticks,
            name=facts.name,
            user=user,
            user_source=source,
            uid=uid,
            owner_uid=facts.owner_uid,
            login_uid=facts.login_uid,
            container_id=facts.container,
            slurm_job=facts.slurm_job,
            mount_hint=None if facts.container is None else self._mount_hint(facts, accounts),
        )

    def _mount_hint(self, facts: ProcessFacts, accounts: Accounts) -> Optional[str]:
        """Read once in the life of a process: its mounts hardly change, and the tables can be long."""
        key = (facts.pid, facts.start_ticks)
        if key not in self._hints:
            mounts, host = self._procfs.mounts(facts.pid), self._procfs.host_mounts()
            self._hints[key] = mount_hint(mounts, host, lambda name: self._is_person(name, accounts))
        return self._hints[key]

    def _is_person(self, name: str, accounts: Accounts) -> bool:
        uid = self._uid_of(name)
        return uid is not None and accounts.is_ordinary(uid)

    def _name_user(self, facts: ProcessFacts, accounts: Accounts) -> Named:
        rules = self._rules(facts, accounts)
        return next((named for named in rules if named is not None), (USER_UNKNOWN, UserSource.UNKNOWN, None))

    def _rules(self, facts: ProcessFacts, accounts: Accounts) -> Iterator[Optional[Named]]:
        """What each rule says in turn, None where it has nothing to say; lazily, because later ones cost more."""
        owner, login = facts.owner_uid, facts.login_uid
        mapped_for = None if owner is None else accounts.subordinate_owner(owner)
        # A mapped uid is its own person only where a directory hands out the same numbers
        if owner is not None and accounts.is_ordinary(owner) and (mapped_for is None or self._name_of(owner)):
            yield self._account(owner, UserSource.OWNER)
        if login is not None and accounts.is_ordinary(login) and not self._in_container(facts):
            yield self._account(login, UserSource.LOGINUID)
        if facts.slice_uid is not None and accounts.is_ordinary(facts.slice_uid):
            yield self._account(facts.slice_uid, UserSource.SLICE)
        # Ranges of root, dockremap or lxd belong to engines, not to people
        lender = None if mapped_for is None else self._subordinate_uid(mapped_for)
        if lender is not None and accounts.is_ordinary(lender):
            yield self._account(lender, UserSource.SUBUID)
        if facts.container is not None:
            yield f"container:{short_container_id(facts.container)}", UserSource.CONTAINER, None
        if owner is not None:
            yield self._account(owner, UserSource.SYSTEM)

    def _account(self, uid: int, source: UserSource) -> Named:
        return self._name_of(uid) or f"uid:{uid}", source, uid

    def _subordinate_uid(self, owner: str) -> Optional[int]:
        return int(owner) if owner.isdigit() else self._uid_of(owner)

    def _in_container(self, facts: ProcessFacts) -> bool:
        return facts.container is not None or any(name in _ENGINES for name in self._procfs.ancestor_names(facts))


def build_identifier(procfs_root: Path, clock: Clock, *, trust_pid_namespace: bool) -> Identifier:
    """An identifier for this host."""
    names, uids = CachedLookup(clock, look_up_name), CachedLookup(clock, look_up_uid)
    return Identifier(
        ProcFs(procfs_root),
        names.get,
        uids.get,
        trust_pid_namespace=trust_pid_namespace,
        accounts=AccountFiles().read,
    )
