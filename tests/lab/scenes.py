"""Three hosts whose cards do one thing each for as long as the test runs, and what a right report says of them.

Every card of a host is in every tick of that host, so each card's time is the host's observed time divided by its
cards, and all amounts of the fleet follow from three numbers. `Expected` computes them from the scenes alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.lab.host import LabHost
from tests.nvml_stub.scene import GIB, MIB, Card, Error, Process, Scene

H100, A100, L40S = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA L40S"
A6000, TURING = "NVIDIA RTX A6000", "NVIDIA GeForce RTX 2080 Ti"
STATES = ("active", "idle-held", "truly-idle", "unknown")
# Every call on a lost card fails so, the one that opens it first.
LOST = (Error("nvmlDeviceGetHandleByIndex", "GPU_IS_LOST"), Error("nvmlDeviceGetUUID", "GPU_IS_LOST"))


@dataclass(frozen=True)
class Job:
    """A process `name` of `user` that holds `memory` bytes of one card. kind: as in the stub's Process."""

    user: str
    name: str
    memory: int
    kind: str = "compute"


@dataclass(frozen=True)
class Part:
    """One card and what must be reported of it. util None: the card cannot say. lost: it falls off after a while."""

    model: str
    util: int | None
    state: str
    jobs: tuple[Job, ...] = ()
    reason: str | None = None
    lost: bool = False

    @property
    def holders(self) -> frozenset[str]:
        """Users who hold the card, as far as it can be seen."""
        return frozenset() if self.lost else frozenset(job.user for job in self.jobs if job.kind != "graphics")


FLEET: Mapping[str, tuple[Part, ...]] = {
    "atlas": (
        Part(H100, 97, "active", (Job("alice", "train", 40 * GIB),)),
        Part(H100, 88, "active", (Job("alice", "finetune", 30 * GIB),)),
        Part(A100, 0, "idle-held", (Job("alice", "jupyter", 60 * GIB),)),
        Part(L40S, 0, "truly-idle"),
    ),
    "boreas": (
        Part(L40S, 55, "active", (Job("bob", "render", 8 * GIB),)),
        Part(A6000, 0, "unknown", reason="card_lost", lost=True),
        Part(TURING, None, "unknown", reason="util_unavailable"),
    ),
    "cetus": (
        # Two processes of one user count once; two users share the time.
        Part(
            A100, 3, "idle-held",
            (Job("alice", "notebook", 20 * GIB), Job("bob", "serve", 9 * GIB), Job("bob", "tune", GIB)),
        ),
        Part(L40S, 0, "truly-idle", (Job("root", "Xorg", 200 * MIB, "graphics"),)),
        Part(H100, 80, "active", (Job("carol", "simulate", 70 * GIB),)),
    ),
}  # fmt: skip
USERS = ("alice", "bob", "carol")


class Stage:
    """One host's scene: its processes run for real inside it, and the stub lists their pids."""

    def __init__(self, host: LabHost, parts: tuple[Part, ...]) -> None:
        self._host = host
        self._parts = parts
        self._pids: dict[Job, int] = {}

    def start_jobs(self) -> None:
        for part in self._parts:
            for job in part.jobs:
                self._pids[job] = self._host.start_process(job.user, job.name)

    def show(self, *, lost: bool, driver: str = "570.86.15", generation: int = 0) -> None:
        """Write the scene. lost: whether the cards that fall off have done so. generation: of the loaded driver."""
        cards = [self._card(index, part, lost=lost and part.lost) for index, part in enumerate(self._parts)]
        Scene(cards=tuple(cards), driver=driver, generation=generation).save(self._host.path("/etc/gua-nvml-scene"))

    def _card(self, index: int, part: Part, *, lost: bool) -> Card:
        return Card(
            uuid=f"GPU-{self._host.name}-{index}",
            name=part.model,
            util=part.util,
            memory_used=sum(job.memory for job in part.jobs),
            processes=tuple(Process(self._pids[job], job.memory, job.kind) for job in part.jobs),
            rules=LOST if lost else (),
        )


@dataclass
class UserSums:
    card_s: float = 0.0
    share_s: float = 0.0
    shared_card_s: float = 0.0
    states: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STATES, 0.0))


@dataclass
class Expected:
    """What the scenes imply. observed_s: for each host that answered, the time it was observed (not: card time)."""

    observed_s: Mapping[str, float]

    def host(self, name: str) -> dict[str, float]:
        """Card-seconds by state of one host."""
        states = dict.fromkeys(STATES, 0.0)
        for part in FLEET[name]:
            states[part.state] += self.observed_s[name]
        return states

    def total(self) -> dict[str, float]:
        return {state: sum(self.host(name)[state] for name in self.observed_s) for state in STATES}

    def reasons(self) -> dict[str, float]:
        sums: dict[str, float] = defaultdict(float)
        for part, seconds in self._parts():
            if part.reason is not None:
                sums[part.reason] += seconds
        return dict(sums)

    def models(self) -> dict[str, tuple[int, dict[str, float]]]:
        """Model -> (cards, card-seconds by state)."""
        cards: dict[str, int] = defaultdict(int)
        states: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(STATES, 0.0))
        for part, seconds in self._parts():
            cards[part.model] += 1
            states[part.model][part.state] += seconds
        return {model: (cards[model], states[model]) for model in cards}

    def users(self) -> dict[str, UserSums]:
        sums: dict[str, UserSums] = defaultdict(UserSums)
        for part, seconds in self._parts():
            for user in part.holders:
                sums[user].card_s += seconds
                sums[user].share_s += seconds / len(part.holders)
                sums[user].shared_card_s += seconds if len(part.holders) > 1 else 0
                sums[user].states[part.state] += seconds
        return dict(sums)

    def _parts(self) -> Iterator[tuple[Part, float]]:
        return ((part, seconds) for name, seconds in self.observed_s.items() for part in FLEET[name])
