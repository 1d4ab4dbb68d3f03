"""Names of hosts and groups in a table's column, short and never alike. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from wcwidth import wcswidth

from gua.report.cells import fit
from gua.text import shown


def short_names(names: Sequence[str], width: int | None) -> dict[str, str]:
    """Each name as a cell of `width` columns if it can be told from the others there; harmless to a terminal.

    width None: the whole names.

    First the domain goes that all dotted names share, then the middle or the end, whichever leaves no two alike. Where
    nothing does, they stay as they are: a table too wide beats one that does not say whose row it is.
    """
    cells = [shown(name) for name in names]
    if width is not None and max(map(wcswidth, cells), default=0) > width:
        domain = _shared_domain([cell for cell in cells if "." in cell])
        bare = [cell.removesuffix(domain) for cell in cells]
        tries = ([_without_middle(cell, width) for cell in bare], [fit(cell, width) for cell in bare], cells)
        cells = next(short for short in tries if len(set(short)) == len(set(cells)))
    return dict(zip(names, cells, strict=True))


def _shared_domain(names: Sequence[str]) -> str:
    """`.cluster.example.org` where every name ends in it and begins with more than it; else nothing."""
    parts = [name.split(".")[::-1] for name in names]
    shared = 0
    while len(names) > 1 and all(len(part) > shared + 1 for part in parts) and len({p[shared] for p in parts}) == 1:
        shared += 1
    return "".join(f".{part}" for part in reversed(parts[0][:shared])) if shared else ""


def _without_middle(text: str, width: int) -> str:
    if wcswidth(text) <= width:
        return text
    half = (width - 2) // 2
    tail = text[-half:]
    while wcswidth(tail) > half:
        tail = tail[1:]
    head = text[:half]
    while wcswidth(head) > half:
        head = head[:-1]
    return f"{head}..{tail}"
