"""What parent and sampling child say to each other, as pickles over their socket.

child -> parent   None                 NVML is initialised, or cannot be
parent -> child   Request              read all cards but these
child -> parent   At                   before each card: from here on I am at this one
child -> parent   (number, Snapshot)   the answer to the request with this number
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """number: counts up, so that a late answer is never taken for the present. leave_out: see `gua.nvml.isolation`."""

    number: int
    leave_out: frozenset[str] = frozenset()


@dataclass(frozen=True)
class At:
    """The card that the child now asks about, by its name in `gua.nvml.isolation`."""

    card: str
