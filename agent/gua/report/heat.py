"""The heat map: hours of the week, darker where more of the known card time was in one state. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

from gua.report.cells import Look
from gua.report.notes import NO_BREAK

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

# Taller (or a higher digit) is more, in equal steps. A dot means none at all, blank that nothing is known.
_SHADES_UNICODE = "▁▂▃▄▅▆▇█"
_SHADES_ASCII = "0123456789"
_NONE_UNICODE, _NONE_ASCII = "·", "."

_HOURS_LINE = "0     6     12    18"
_BLOCK_WIDTH = 24


def heat_lines(hours: Sequence[Mapping[str, Any]], wanted: Sequence[str], look: Look) -> list[str]:
    """A block of seven days by 24 hours for each wanted state, side by side, with a title line and an hours line.

    hours: `hours_of_week` of a report.
    """
    blocks = [_block(hours, state, look) for state in wanted]
    titles = [state.ljust(_BLOCK_WIDTH) for state in wanted]
    rulers = [_HOURS_LINE.ljust(_BLOCK_WIDTH)] * len(wanted)
    rows = [[block[day] for block in blocks] for day in range(7)]
    lines = ["     " + "    ".join(titles), "     " + "    ".join(rulers)]
    lines += [f"{day}  " + "    ".join(row) for day, row in zip(DAYS, rows)]
    return [line.rstrip() for line in lines]


def heat_legend(look: Look) -> str:
    """What the marks of `heat_lines` mean."""
    more = f"{_SHADES_UNICODE} more, by eighths" if look.unicode else "0 to 9 tenths"
    named = [f"{_NONE_UNICODE if look.unicode else _NONE_ASCII} none", more, "blank: nothing known"]
    return "  ".join(text.replace(" ", NO_BREAK) for text in named)


def _block(hours: Sequence[Mapping[str, Any]], state: str, look: Look) -> list[str]:
    cells = {(hour["weekday"], hour["hour"]): _fraction(hour["card_s"], state) for hour in hours}
    return ["".join(_shade(cells.get((day, hour)), look) for hour in range(24)) for day in range(7)]


def _fraction(states: Mapping[str, float], state: str) -> Optional[float]:
    known = states["active"] + states["idle-held"] + states["truly-idle"]
    return states[state] / known if known > 0 else None


def _shade(fraction: Optional[float], look: Look) -> str:
    if fraction is None:
        return " "
    if fraction <= 0:
        return _NONE_UNICODE if look.unicode else _NONE_ASCII
    shades = _SHADES_UNICODE if look.unicode else _SHADES_ASCII
    return shades[min(len(shades) - 1, int(fraction * len(shades)))]
