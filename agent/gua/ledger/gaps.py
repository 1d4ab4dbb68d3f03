"""Time of a card that no tick covers, and why as far as that was kept. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Optional

from gua.coverage import Span, clip, subtract
from gua.store.ledger import LifeRow


@dataclass(frozen=True)
class Background:
    """What is known of a card's and the daemons' lives. pauses: when the agent was told not to look. cut: when the card
    was cut into MIG instances, and so was not there itself. whole: when the card of an instance was whole.

    known_from_ms: the card's first tick. retired_ms: None while it is expected. now_ms: nothing is later.
    """

    known_from_ms: int
    retired_ms: Optional[int]
    now_ms: int
    pauses: Sequence[Span] = ()
    cut: Sequence[Span] = ()
    whole: Sequence[Span] = ()
    lives: Sequence[LifeRow] = ()


@dataclass(frozen=True)
class Gap:
    """why: `not_known_yet`, `retired`, `in_instances`, `card_whole`, `paused`, `no_daemon`, `daemon_silent`,
    `not_sampled`, `future`.

    ended_ms: when the daemon before said it ended. next_ms: when the next one began. None: not known, or there is none.
    """

    since_ms: int
    until_ms: int
    why: str
    ended_ms: Optional[int] = None
    next_ms: Optional[int] = None


def gaps_of(window: Span, covered: Iterable[Span], background: Background) -> list[Gap]:
    """The parts of the window that `covered` leaves out, in time order, each with its reason."""
    gaps: list[Gap] = []
    for span in subtract(window, joined(sorted(covered))):
        gaps += _explained(span, background)
    return gaps


def joined(spans: Iterable[Span]) -> list[Span]:
    """Spans that follow each other become one. spans: by their starts."""
    found: list[Span] = []
    for start, end in spans:
        add_span(found, (start, end))
    return found


def add_span(spans: list[Span], span: Span, *, bridge_ms: int = 0) -> int:
    """Add a span to joined ones, making it one with the last of them where it follows that.

    bridge_ms: also where it begins less than this later. Gives how much was bridged.
    """
    late_ms = span[0] - spans[-1][1] if spans else 0
    if not spans or span[0] < spans[-1][0] or late_ms > max(0, bridge_ms - 1):
        spans.append(span)
        return 0
    spans[-1] = (spans[-1][0], max(spans[-1][1], span[1]))
    return max(0, late_ms)


def _explained(span: Span, background: Background) -> Iterator[Gap]:
    """One unseen stretch, cut where its reason changes."""
    fixed = sorted(_fixed(span, background), key=lambda gap: gap.since_ms)
    left = subtract(span, [(gap.since_ms, gap.until_ms) for gap in fixed])
    gaps = [*fixed, *(_by_life(part, background.lives) for part in left)]
    yield from sorted(gaps, key=lambda gap: gap.since_ms)


def _fixed(span: Span, background: Background) -> Iterator[Gap]:
    """Reasons that hold whatever the daemon did; the first of them counts where two meet."""
    far = 1 << 62
    reasons = [
        ("future", (background.now_ms, far)),
        ("not_known_yet", (-far, background.known_from_ms)),
        ("retired", (far if background.retired_ms is None else background.retired_ms, far)),
        *(("in_instances", span) for span in background.cut),
        *(("card_whole", span) for span in background.whole),
        *(("paused", pause) for pause in background.pauses),
    ]
    taken: list[Span] = []
    for why, reach in reasons:
        part = clip(reach, span)
        if part[0] < part[1]:
            yield from (Gap(*piece, why) for piece in subtract(part, taken))
            taken.append(part)


def _by_life(span: Span, lives: Sequence[LifeRow]) -> Gap:
    """What the daemons' lives say of a stretch that nothing else explains, by its beginning."""
    before = [life for life in lives if life.started_ms <= span[0]]
    later = [life.started_ms for life in lives if life.started_ms > span[0]]
    next_ms = min(later, default=None)
    if not before:
        return Gap(*span, "no_daemon", None, next_ms)
    ended_ms = before[-1].ended_ms
    if ended_ms is not None and ended_ms < span[1]:
        return Gap(*span, "no_daemon", ended_ms, next_ms)
    # A next life without an end of the one before: it was killed, or its host went down
    silent = ended_ms is None and next_ms is not None and next_ms <= span[1]
    return Gap(*span, "daemon_silent" if silent else "not_sampled", ended_ms, next_ms)
