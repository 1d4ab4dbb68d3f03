"""The check of the enrolment. The board itself is asked only on request: a doctor that phones out is a surprise."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from gua.cloud.config import load_config
from gua.cloud.heard import Board, board_of, is_silent
from gua.doctor.check import FAIL, OK, SKIP, WARN, Check
from gua.errors import BoardFailed, ConfigError, EnrolmentForbidden, NotEnrolled, TokenRefused
from gua.units import MS_PER_SECOND, parse_time_ms, to_iso

if TYPE_CHECKING:
    from gua.store.reader import TickRow

# All checks together have ten seconds.
_BOARD_S = 5.0
_ID = "cloud"
_SILENT_CURE = "`gua status` tells since when; see that the daemon runs with --cloud, and ask: `gua doctor --cloud`"


def look(path: Path, database: Path, now_ms: int, *, ask_board: bool) -> Check:
    """Whether this host is enrolled, by a file that others cannot read; and with `ask_board` whether the board agrees.

    Not being enrolled is no fault: most hosts are read over SSH only. In the details: what the board took of this host.
    """
    warnings: list[str] = []
    try:
        config = load_config(path, warnings.append, repair=False)
    except NotEnrolled:
        return Check(_ID, SKIP, "not enrolled with a board", None, {"enrolled": False})
    except EnrolmentForbidden:
        there = os.path.exists(path)  # not to be told where even the folder is closed
        summary = "enrolled; only" if there else "cannot tell: only"
        summary += " the daemon's user may look at the enrolment"
        details: dict[str, Any] = {"enrolled": True if there else None}
        return Check(_ID, SKIP, summary, "run the doctor as that user to have it checked", details)
    except ConfigError as exc:
        what, _, cure = str(exc).partition("; ")
        return Check(_ID, WARN, what, cure or None, {"enrolled": True})
    details = {
        "enrolled": True,
        "server_url": config.server_url,
        "display_name": config.display_name,
        "enrolled_at": to_iso(_written_ms(path, now_ms)),
        "board": board_of(config, database, now_ms),
    }
    if warnings:
        what, _, cure = warnings[0].partition("; ")
        return Check(_ID, WARN, what, cure or None, details)
    enrolled = f"enrolled with {config.server_url} as {config.display_name}"
    if not ask_board:
        return Check(_ID, OK, enrolled, None, details)
    from gua.cloud.client import BoardClient

    try:
        BoardClient(config.server_url, _BOARD_S, _BOARD_S).probe(config.agent_token)
    except TokenRefused as exc:
        return Check(_ID, FAIL, str(exc).partition("; ")[0], "run `gua enroll --force` with a new token", details)
    except BoardFailed as exc:
        return Check(_ID, FAIL, str(exc), "see that the board runs, and that this host may reach it", details)
    return Check(_ID, OK, f"{enrolled}; the board answers and does not refuse the token", None, details)


def _written_ms(path: Path, otherwise_ms: int) -> int:
    try:
        return round(path.stat().st_mtime * MS_PER_SECOND)
    except OSError:
        return otherwise_ms


def with_silence(check: Check, running: Optional[bool], last: Optional[TickRow]) -> Check:
    """A warning where the check found nothing, and a daemon samples without the board taking any of it. Pure.

    running, last: as the check of the daemon has them.
    """
    board: Optional[Board] = check.details.get("board")
    if board is None or check.status != OK or running is False or last is None:
        return check
    if not is_silent(board, last.at_ms, last.interval_ms, parse_time_ms(check.details["enrolled_at"])):
        return check
    why = f": {board['reason']}" if board["reason"] else ""
    # The same words on every host whose board is away, so that a fleet's doctor says it once
    summary = f"enrolled with {check.details['server_url']}, but {_silence(board)}{why}"
    return Check(check.id, WARN, summary, _SILENT_CURE, check.details)


def _silence(board: Board) -> str:
    if board["last_accepted_age_s"] is None and board["none_since"] is None:
        return "whether the board took a state is not known"
    return "the board takes no state any more" if board["last_accepted_at"] else "the board took no state yet"


def no_answer(*, ask_board: bool) -> Check:
    """What to say when looking took too long."""
    where = "the board or its enrolment" if ask_board else "the enrolment's file system"
    return Check(_ID, WARN, f"{where} does not answer", "see that it can be reached")
