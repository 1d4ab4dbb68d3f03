"""Ids in statements. Pure."""

from __future__ import annotations

from collections.abc import Iterable


def numbers(ids: Iterable[int]) -> str:
    """Ids as a list in a statement. They are our own, and whole numbers."""
    return ", ".join(str(int(one)) for one in ids)
