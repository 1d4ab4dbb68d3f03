"""Everything `gua` raises on purpose, and the exit status each one ends the program with.

    GuaError                    1  something failed; the message names what, where, and what to do
    ├── UsageError              2  the command line
    ├── ConfigError             2  a settings file or environment variable: names file and key
    │   └── EnrolmentForbidden  2  the enrolment is there, and this user may not read it
    ├── DatabaseMissing         2  no database there yet
    ├── NoGpu                   2  no NVIDIA device on the PCI bus, so there is no history to read
    ├── DatabaseUnusable        1  there, but not ours, damaged, newer than this program, or not readable
    │   ├── DatabaseForbidden   1  this user may not read it: names the group that may
    │   ├── DatabaseDamaged     1  its content is broken; whoever writes moves it aside
    │   ├── DatabaseReplaced    1  removed, or another file put in its place, while it was open for writing
    │   └── DatabaseOfPredecessor 1 gpu-usage-audit wrote it; a daemon that starts takes it over
    ├── NotEnrolled             2  a push was asked for and this host has no board
    ├── AlreadyEnrolled         2  it has one, and was not told to forget it
    ├── BoardFailed             1  the board could not be reached, or answered something else than yes
    │   ├── TokenRefused        1  the board does not know this host's token: enrol again
    │   └── PayloadRefused      1  the board will never take this body; another one may pass
    ├── Paused                  4  somebody asked that the driver be left alone, and that still stands
    └── FrameError              1  a remote answer is missing, torn or not framed

A message is one line. It is shown to people, so it holds no traceback and no secret.
"""

from __future__ import annotations

import enum
from typing import Optional


class ExitStatus(enum.IntEnum):
    """Exit statuses of `gua` and `gua-fleet` (documented in README; the values are a contract)."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOBODY_ANSWERED = 3  # `gua-fleet`: no host of the inventory answered
    NOT_RUNNING = 3  # `gua status`: no daemon samples here, as init scripts' `status` has it
    PAUSED = 4  # `gua sync-once`: `gua pause` stands, so nothing was measured


class GuaError(Exception):
    """Base of all errors that end as one line on stderr."""

    exit_status: ExitStatus = ExitStatus.FAILED
    code: str = "failed"  # the word for this error in `gua.error/1` documents: a contract, never reworded


class UsageError(GuaError):
    """The command line cannot be understood or contradicts itself."""

    exit_status = ExitStatus.USAGE
    code = "usage"


class ConfigError(GuaError):
    """A settings file or a `GUA_*` variable is wrong; the message names file, key and cure."""

    exit_status = ExitStatus.USAGE
    code = "config"


class EnrolmentForbidden(ConfigError):
    """This host is enrolled with a board, by a file that is not for this user."""

    code = "enrolment_forbidden"


class DatabaseMissing(GuaError):
    """There is no database at the chosen path."""

    exit_status = ExitStatus.USAGE
    code = "database_missing"


class NoGpu(GuaError):
    """This host has no NVIDIA device on its PCI bus: a quiet, valid state, but there is nothing to report."""

    exit_status = ExitStatus.USAGE
    code = "no_gpu"


class DatabaseUnusable(GuaError):
    """The database is there but cannot be used: not a database, newer schema, no permission, locked."""

    code = "database_unusable"


class DatabaseForbidden(DatabaseUnusable):
    """The database may not be read by this user; the message names who may."""

    code = "database_forbidden"


class DatabaseChanged(DatabaseUnusable):
    """A writer changed the file under a reader who could not keep it from that: what was read may be wrong."""

    code = "database_changed"


class DatabaseDamaged(DatabaseUnusable):
    """The database's content is broken; opening it to write moves it aside and begins a new one."""


class DatabaseReplaced(DatabaseUnusable):
    """The file that is open is no longer the one at its path: what is written to it is lost. Open it again."""


class DatabaseOfPredecessor(DatabaseUnusable):
    """The file is a database of gpu-usage-audit: to be imported, never called damaged."""


class NotEnrolled(GuaError):
    """A push was asked for, and this host was never enrolled with a board."""

    exit_status = ExitStatus.USAGE
    code = "not_enrolled"


class AlreadyEnrolled(GuaError):
    """This host is enrolled with a board; enrolling again must be asked for."""

    exit_status = ExitStatus.USAGE
    code = "already_enrolled"


class BoardFailed(GuaError):
    """The board could not be reached, or its answer was no success. The same may work later.

    retry_after_s: how long the board asked to be left alone, None when it did not say.
    answered: whether an answer came; without one, what was asked may have been done all the same.
    """

    code = "board_failed"
    retry_after_s: Optional[int] = None
    answered: bool = True


class TokenRefused(BoardFailed):
    """The board refuses the token (401, 403): only enrolling again, or the board's people, can mend that."""

    code = "token_refused"


class PayloadRefused(BoardFailed):
    """The board refuses this body (400, 413, 422), now and ever.

    names: what its detail names, as paths or words; to find out whether it lacks a newer revision.
    """

    code = "payload_refused"

    def __init__(self, message: str, names: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.names = names


class Paused(GuaError):
    """The driver is to be left alone (`gua pause`); the message says until when."""

    exit_status = ExitStatus.PAUSED
    code = "paused"


class FrameError(GuaError):
    """The other side's answer has no complete frame: nothing in it may be believed."""

    code = "frame"
