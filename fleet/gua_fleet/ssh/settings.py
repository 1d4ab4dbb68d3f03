"""How a sweep asks: what everything that takes part in one is told."""

from __future__ import annotations

from dataclasses import dataclass

# A month of a big host's history is a few hundred kilobytes; anything near this is not a report.
OUTPUT_CAP_BYTES = 32 << 20


@dataclass(frozen=True)
class SweepSettings:
    """forks: hosts asked at once. timeout_s: hard deadline per host, from its turn on. accept_new: record the keys
    of hosts never seen before (a changed key is refused all the same). cap_bytes: of each stream of an answer.
    """

    forks: int = 32
    timeout_s: float = 20.0
    accept_new: bool = False
    cap_bytes: int = OUTPUT_CAP_BYTES
