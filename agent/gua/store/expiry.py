"""Names of people go after a while: their sums and holds stay, as those of `(expired)`. One slot at a time."""

from __future__ import annotations

from typing import Optional

from gua.coverage import SLOT_MS
from gua.model import UserSource
from gua.store.codes import USER_SOURCE_CODE
from gua.store.session import Session

EXPIRED = "(expired)"

_UNATTRIBUTED = USER_SOURCE_CODE[UserSource.UNATTRIBUTED]
_SUMS = ("card_ms", "share_ms", "shared_ms", "long_idle_ms", "energy_mj", "energy_ms", "samples")


def old_slot(session: Session, cut_ms: int) -> Optional[int]:
    """The next slot with ticks that ends before `cut_ms` and may still name users; None when there is none."""
    row = session.rows(
        "SELECT min(slot) FROM tick_slot WHERE slot >= (SELECT max(users_since_slot) FROM store) AND slot < ?",
        (cut_ms // SLOT_MS,),
    )[0]
    return None if row[0] is None else int(row[0])


def expire_slot(session: Session, slot: int) -> bool:
    """Fold one slot's users into `(expired)`. True when processes or users went that others may have in mind."""
    expired = _expired_user(session)
    users = _fold(session, slot, expired)
    changed = _forget_processes(session, slot, expired, users)
    for user in users:
        gone = session.connection.execute(
            "DELETE FROM user WHERE id = ? AND NOT EXISTS (SELECT 1 FROM process WHERE user = ?)", (user, user)
        )
        changed = changed or gone.rowcount > 0
    session.connection.execute("UPDATE store SET users_since_slot = ?", (slot + 1,))
    return changed


def _expired_user(session: Session) -> int:
    rows = session.rows("SELECT id FROM user WHERE name = ?", (EXPIRED,))
    if rows:
        return int(rows[0][0])
    source = USER_SOURCE_CODE[UserSource.UNKNOWN]
    return session.insert("user", name=EXPIRED, source=source, rev=session.rev)


def _fold(session: Session, slot: int, expired: int) -> set[int]:
    """Add up one slot's users. Gives whose rows went."""
    where = f" WHERE slot = ? AND user NOT IN (SELECT id FROM user WHERE source = {_UNATTRIBUTED})"
    sums = ", ".join(f"sum({column})" for column in _SUMS)
    users = {row[0] for row in session.rows(f"SELECT DISTINCT user FROM user_slot{where}", (slot,))}
    folded = session.rows(f"SELECT device, rule, state, {sums} FROM user_slot{where} GROUP BY 1, 2, 3", (slot,))
    session.connection.execute(f"DELETE FROM user_slot{where}", (slot,))
    session.connection.executemany(
        f"INSERT INTO user_slot (slot, user, device, rule, state, {', '.join(_SUMS)}, rev)"
        f" VALUES ({', '.join('?' * (len(_SUMS) + 6))})",
        ((slot, expired, *row, session.rev) for row in folded),
    )
    return users - {expired}


def _forget_processes(session: Session, slot: int, expired: int, users: set[int]) -> bool:
    """Take the names from processes whose last hold ended with this slot or before; whose they were joins `users`."""
    since_ms = int(session.rows("SELECT max(users_since_slot) FROM store")[0][0]) * SLOT_MS
    end_ms = (slot + 1) * SLOT_MS
    gone = session.rows(
        "SELECT DISTINCT process.id, user FROM hold JOIN process ON process.id = hold.process"
        " WHERE NOT is_open AND until_ms <= ? AND until_ms > ? AND user <> ?"
        " AND NOT EXISTS (SELECT 1 FROM hold AS other WHERE other.process = process.id"
        " AND (other.is_open OR other.until_ms > ?))",
        (end_ms, since_ms, expired, end_ms),
    )
    users.update(user for _, user in gone)
    session.connection.executemany(
        "UPDATE process SET user = ?, name = ?, owner_uid = NULL, login_uid = NULL, container_id = NULL,"
        " slurm_job = NULL, mount_hint = NULL, rev = ? WHERE id = ?",
        ((expired, EXPIRED, session.rev, process) for process, _ in gone),
    )
    return bool(gone)
