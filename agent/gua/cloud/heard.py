"""What the board heard of this host: when it last took a state, or since when it takes none.

It is kept in `board.json` beside the database, for whoever may read that; the token's file is not for them. Nothing
depends on it: where it cannot be written or read, a push is as good as before.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import stat
import time
from dataclasses import asdict, dataclass, replace
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any, Optional, TypedDict

from gua.clock import Clock
from gua.cloud.config import CloudConfig, load_config, named
from gua.errors import EnrolmentForbidden, GuaError, NotEnrolled
from gua.open_file import open_at_once
from gua.text import shown
from gua.units import MS_PER_SECOND, format_duration, parse_time_ms, to_iso

logger = logging.getLogger(__name__)

FILE_NAME = "board.json"
# The readers' group is that of the folder's files; who may read the database may read this.
_MODE = 0o640
_LARGEST_BYTES = 8192
_LONGEST_REASON = 200
_LATEST_MS = 253_402_300_799_999  # the end of the year 9999, the last that ISO 8601 can tell
# A board that takes every state is no reason to write a file as often.
_KEEP_S = 60.0
# Ticks that came for so many intervals, and for so long, without the board taking any of them.
_SILENT_INTERVALS = 10
_SILENT_MS = 15 * 60 * MS_PER_SECOND


@dataclass(frozen=True)
class Heard:
    """What is kept. server_url, host_id: the enrolment that it is of. Times: Unix milliseconds.

    accepted_ms: when a state was last taken, None: not that anybody knows. none_ms: since when none was taken, where
    accepted_ms is None; None: not known. failing_ms: since when every push fails, None where the newest one was taken.
    reason: why the newest one failed.
    """

    server_url: str
    host_id: str
    accepted_ms: Optional[int] = None
    failing_ms: Optional[int] = None
    reason: Optional[str] = None
    none_ms: Optional[int] = None


class Board(TypedDict):
    """The same in documents. last_accepted_age_s: negative when the clock was set back since.

    none_since: where last_accepted_at is null, since when none was taken; null there: not known.
    """

    last_accepted_at: Optional[str]
    last_accepted_age_s: Optional[float]
    none_since: Optional[str]
    failing_since: Optional[str]
    reason: Optional[str]


class HeardKeeper:
    """Keeps it for one who pushes. Never raises; writes at once what is new, else at most once a minute."""

    def __init__(self, database: Path, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._begun_ms = clock.now_ms()
        self._newest: Optional[Heard] = None  # as it ought to be in the file
        self._written: Optional[Heard] = None  # None as well where the newest one could not be
        self._written_ms = 0
        self._trouble = ""

    def accepted(self, config: CloudConfig) -> None:
        """The board took a state just now."""
        now_ms = self._clock.now_ms()
        self._keep(Heard(config.server_url, config.host_id, now_ms), now_ms)

    def failed(self, config: CloudConfig, error: GuaError) -> None:
        """It took none. Of the error only what happened is kept, not what to do."""
        reason = shown(str(error).partition("; ")[0], _LONGEST_REASON)
        now_ms = self._clock.now_ms()
        kept = self._now_kept(config)
        failing_ms = now_ms if kept.failing_ms is None else kept.failing_ms
        none_ms = failing_ms if kept.accepted_ms is None and kept.none_ms is None else kept.none_ms
        self._keep(replace(kept, failing_ms=failing_ms, reason=reason, none_ms=none_ms), now_ms)

    def _now_kept(self, config: CloudConfig) -> Heard:
        """Read anew, since `gua sync-once` may have pushed meanwhile; what was not due to be written counts too."""
        # What is in the file is the older one where it could not be replaced
        both = [load_heard(self._database), self._newest][:: -1 if self._trouble else 1]
        kept = [one for one in both if one is not None and _is_of(one, config)]
        if not kept:
            return Heard(config.server_url, config.host_id)
        accepted_ms = max((one.accepted_ms for one in kept if one.accepted_ms is not None), default=None)
        none_ms = min((one.none_ms for one in kept if one.none_ms is not None), default=None)
        return replace(kept[0], accepted_ms=accepted_ms, none_ms=none_ms if accepted_ms is None else None)

    def _keep(self, heard: Heard, now_ms: int) -> None:
        self._newest = heard
        # By the clock that people see: when that is set, the time in the file is wrong at once
        if self._is_written(heard) and 0 <= now_ms - self._written_ms < _KEEP_S * MS_PER_SECOND:
            return
        if self._is_superseded(heard):
            return
        self._written, self._written_ms = heard, now_ms
        try:
            _save(heard_path(self._database), heard)
        except FileExistsError:
            self._written = None  # another one is at it right now, with what is as good
        except OSError as exc:
            if str(exc) != self._trouble:
                logger.warning("%s is not written: %s", named(heard_path(self._database)), exc.strerror)
            self._trouble = str(exc)
            if not isinstance(exc, FileNotFoundError):  # ours was taken for one that was left behind
                forget_heard(self._database)  # better nothing than what is true no more
        else:
            self._trouble = ""

    def _is_superseded(self, heard: Heard) -> bool:
        """Whether the host was enrolled anew meanwhile, so that this daemon pushes to what is its board no more."""
        there = load_heard(self._database)
        other = there is not None and (there.server_url, there.host_id) != (heard.server_url, heard.host_id)
        return other and there is not None and there.none_ms is not None and there.none_ms >= self._begun_ms

    def _is_written(self, heard: Heard) -> bool:
        """Whether the file tells all of it but the newest time."""
        return self._written is not None and _means(self._written) == _means(heard)


def _means(heard: Heard) -> tuple[object, ...]:
    """What must be told at once when it changes."""
    return heard.server_url, heard.host_id, heard.failing_ms is None, heard.reason


def heard_path(database: Path) -> Path:
    """Where it is kept."""
    return database.with_name(FILE_NAME)


def _save(path: Path, heard: Heard, owner: Optional[tuple[int, int]] = None) -> None:
    """Put it there in one step. Raises OSError. Not flushed: after a crash the next push writes it again."""
    beside = path.with_name(f".{path.name}.new")
    handle = _open_beside(beside)
    try:
        with open(handle, "wb") as file:
            with contextlib.suppress(OSError):  # a file system without rights
                os.fchmod(handle, _MODE)  # whatever the umask of who calls `gua sync-once`
            if owner is not None:
                os.fchown(handle, *owner)
            file.write(json.dumps(asdict(heard)).encode("ascii"))
        os.replace(beside, path)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def _open_beside(beside: Path) -> int:
    """A new file, always of the same name, so that those of killed programs do not pile up. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(beside, flags, _MODE)
    except FileExistsError:
        with contextlib.suppress(FileNotFoundError):  # the other one is done
            if abs(time.time() - beside.lstat().st_mtime) < _KEEP_S:
                raise  # another one is at it right now
            beside.unlink()
        return os.open(beside, flags, _MODE)


def load_heard(database: Path) -> Optional[Heard]:
    """What is kept; None where nothing is, or nothing that can be read."""
    try:
        # A pipe or a link to a device in its place must not hold anybody up
        with open_at_once(heard_path(database), os.O_NOFOLLOW) as file:
            return parse_heard(file.read(_LARGEST_BYTES)) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
    except OSError:
        return None


def parse_heard(raw: bytes) -> Optional[Heard]:
    """What is in a file's content, None where that is something else. Pure."""
    try:
        fields: Any = json.loads(raw)  # a newer agent's may hold more
        heard = Heard(**{field.name: fields[field.name] for field in dataclass_fields(Heard) if field.name in fields})
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    texts = (heard.server_url, heard.host_id, "" if heard.reason is None else heard.reason)
    times = [at for at in (heard.accepted_ms, heard.failing_ms, heard.none_ms) if at is not None]
    sound = all(isinstance(text, str) for text in texts) and all(
        type(at) is int and 0 <= at <= _LATEST_MS for at in times
    )
    return heard if sound else None


def begin_heard(database: Path, config: CloudConfig, now_ms: int, owner: Optional[tuple[int, int]] = None) -> None:
    """Note that the board of an enrolment made just now took nothing yet. owner: uid and gid of the file, None: ours.

    Where that fails, what is kept of the enrolment before does not count all the same: it names another host.
    """
    forget_heard(database)
    with contextlib.suppress(OSError):
        _save(heard_path(database), Heard(config.server_url, config.host_id, none_ms=now_ms), owner)


def forget_heard(database: Path) -> None:
    """Take it away with the enrolment. Where that fails it does not count all the same: it names its board."""
    with contextlib.suppress(OSError):
        heard_path(database).unlink()


def read_board(enrolment: Path, database: Path, now_ms: int) -> tuple[Optional[bool], Optional[Board]]:
    """Whether this host is enrolled by that file, None where that is not known, and what the board heard.

    The latter is None where the host is not enrolled, or where this user can tell neither.
    """
    try:
        config = load_config(enrolment, lambda line: None, repair=False)
    except NotEnrolled:
        return False, None
    except EnrolmentForbidden:
        heard = load_heard(database)
        return None, None if heard is None else to_board(heard, now_ms)
    except GuaError:
        return None, None
    return True, board_of(config, database, now_ms)


def board_of(config: CloudConfig, database: Path, now_ms: int) -> Board:
    """What the board of this enrolment heard; what another one did does not count."""
    heard = load_heard(database)
    if heard is None or not _is_of(heard, config):
        heard = Heard(config.server_url, config.host_id)
    return to_board(heard, now_ms)


def _is_of(heard: Heard, config: CloudConfig) -> bool:
    return (heard.server_url, heard.host_id) == (config.server_url, config.host_id)


def to_board(heard: Heard, now_ms: int) -> Board:
    """For documents. Pure."""
    at_ms, failing_ms = heard.accepted_ms, heard.failing_ms
    none_ms = heard.none_ms if at_ms is None else None
    return {
        "last_accepted_at": None if at_ms is None else to_iso(at_ms),
        "last_accepted_age_s": None if at_ms is None else (now_ms - at_ms) / MS_PER_SECOND,
        "none_since": None if none_ms is None else to_iso(none_ms),
        "failing_since": None if failing_ms is None else to_iso(failing_ms),
        "reason": None if failing_ms is None else shown(heard.reason or "", _LONGEST_REASON) or None,
    }


def is_silent(board: Board, last_tick_ms: Optional[int], interval_ms: int, enrolled_ms: Optional[int] = None) -> bool:
    """Whether ticks came for long that the board took none of, as far as is known; in a pause none come. Pure.

    last_tick_ms: the newest tick, None without any. enrolled_ms: since when a board could have taken any, where what is
    kept tells nothing; None where that is not known either: then it is silent at once.
    """
    if last_tick_ms is None:
        return False
    # The clock may have been ahead when a state was taken: then failing tells more
    times = (board["last_accepted_at"], board.get("none_since"), board["failing_since"])
    known = [parse_time_ms(at) for at in times if at is not None]
    since_ms = min(known, default=enrolled_ms)
    return since_ms is None or last_tick_ms - since_ms > max(_SILENT_INTERVALS * interval_ms, _SILENT_MS)


def accepted_words(age_s: Optional[float], none_since: Optional[str] = None) -> str:
    """`last accepted 40 s ago`, for people. age_s, none_since: as in `Board`. Pure."""
    if age_s is None:
        return f"none accepted since {none_since}" if none_since else "last accepted not known"
    return f"last accepted {format_duration(round(abs(age_s) * MS_PER_SECOND))} " + (
        "ago" if age_s >= -1 else "ahead of the clock"
    )


def board_line(board: Optional[Board]) -> str:
    """`board: last accepted 40 s ago`, with a line feed; of one that takes nothing also since when, and why. Pure."""
    if board is None:
        return ""
    failing = f"; failing since {board['failing_since']}" if board["failing_since"] else ""
    why = f": {board['reason']}" if board["reason"] else ""
    return f"board: {accepted_words(board['last_accepted_age_s'], board['none_since'])}{failing}{why}\n"
