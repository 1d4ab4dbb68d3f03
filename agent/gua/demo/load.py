"""How hard a made-up session works its card at a time: percent utilisation, smooth over minutes. Pure."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sin

from gua.demo.chance import between, fraction
from gua.demo.people import Session
from gua.units import MS_PER_HOUR

_MINUTE_MS = 60_000
# A burst of work in a notebook lasts this long; so does a pause of a training job for its validation.
_BURST_MS = 10 * _MINUTE_MS
# After this long the notebook's owner has gone and its memory stays.
_NOTEBOOK_USED_MS = 3 * MS_PER_HOUR


def utilisation_pct(sessions: tuple[Session, ...], local_ms: int) -> int:
    """0 to 100 for all sessions of a card together, at a time of the people's own clock."""
    return min(100, round(sum(_LOADS[session.load](session, local_ms) for session in sessions)))


def _train(session: Session, local_ms: int) -> float:
    if fraction("pause", session.pid, local_ms // _BURST_MS) < 0.04:
        return between(2, 30, "pause-load", session.pid, local_ms // _MINUTE_MS)
    wave = sin(2 * pi * (local_ms - session.start_ms) / (40 * _MINUTE_MS))
    noise = between(-3, 3, "noise", session.pid, local_ms // 30_000)
    return between(76, 94, "base", session.pid) + 4 * wave + noise


def _notebook(session: Session, local_ms: int) -> float:
    used = local_ms - session.start_ms < _NOTEBOOK_USED_MS
    if fraction("burst", session.pid, local_ms // _BURST_MS) < (0.45 if used else 0.01):
        return between(15, 80, "burst-load", session.pid, local_ms // _BURST_MS)
    return between(0, 2, "idle", session.pid, local_ms // _MINUTE_MS)


def _serve(session: Session, local_ms: int) -> float:
    by_day = sin(pi * (local_ms % (24 * MS_PER_HOUR)) / (24 * MS_PER_HOUR))
    return max(0.0, 24 * by_day + between(-6, 6, "requests", session.pid, local_ms // _MINUTE_MS))


_LOADS: dict[str, Callable[[Session, int], float]] = {"train": _train, "notebook": _notebook, "serve": _serve}
