"""Chance without a generator: a hash of where and when, the same on every machine and Python version. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

_Item = TypeVar("_Item")
_SPAN = float(1 << 64)


def fraction(*where: object) -> float:
    """A number from 0 to below 1 that belongs to `where`; different places give independent-looking numbers."""
    digest = blake2b("/".join(map(str, where)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / _SPAN


def pick(items: Sequence[_Item], *where: object) -> _Item:
    """The one of `items` (not empty) that belongs to `where`."""
    return items[int(fraction(*where) * len(items))]


def between(low: float, high: float, *where: object) -> float:
    """A number from `low` to `high` that belongs to `where`."""
    return low + (high - low) * fraction(*where)
