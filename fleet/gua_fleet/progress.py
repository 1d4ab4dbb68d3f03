"""How far a sweep is, on stderr: a line that changes where somebody watches, plain lines where they were asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from gua_fleet.show import one_line
from gua_fleet.ssh.sweep import Progress, Standing

if TYPE_CHECKING:
    from rich.console import Console

# A name is worth showing once it is slower than nearly all hosts are; three fit on a line.
_SLOW_S = 2.0
_MOST_NAMES = 3


@contextlib.contextmanager
def watched(stream: TextIO, *, each: bool = False) -> Iterator[Progress | None]:
    """What to give `sweep` as its progress; None where nobody would read it.

    each: one plain line for every host that is done (`--verbose`). Otherwise, on a terminal, one line that changes
    and is gone in the end.
    """
    if each:
        yield lambda standing: _write(stream, host_line(standing))
    elif stream.isatty():
        with _live_line(stream) as progress:
            yield progress
    else:
        yield None


def host_line(standing: Standing) -> str:
    """`12/40 gpu07: ok, 1.2 s` for the host that is done, with its reason where there is one."""
    latest = standing.latest
    reason = f" ({one_line(latest.detail, width=120)})" if latest.detail else ""
    place = f"{standing.done}/{standing.total}"
    return f"{place} {one_line(latest.host.name)}: {latest.outcome_text}{reason}, {latest.elapsed_s:.1f} s"


def summary_line(standing: Standing) -> str:
    """`12 of 40 hosts, 2 failed, 8 running, slowest gpu07 14 s` at this moment."""
    parts = [f"{standing.done} of {standing.total} hosts"]
    if standing.failed:
        parts.append(f"{standing.failed} failed")
    if standing.running:
        parts.append(f"{len(standing.running)} running")
    slow = [(name, waited_s) for name, waited_s in standing.running if waited_s >= _SLOW_S]
    if slow:
        names = ", ".join(f"{one_line(name)} {waited_s:.0f} s" for name, waited_s in slow[:_MOST_NAMES])
        parts.append(f"slowest {names}")
    return ", ".join(parts)


@contextlib.contextmanager
def _live_line(stream: TextIO) -> Iterator[Progress]:
    from rich.console import Console  # only where somebody watches: it takes 0.1 s to load
    from rich.text import Text

    console: Console = Console(file=stream, highlight=False, markup=False)
    with console.status(Text("asking the hosts")) as status:
        yield lambda standing: status.update(Text(summary_line(standing)))


def _write(stream: TextIO, line: str) -> None:
    stream.write(f"{line}\n")
    stream.flush()
