"""What a host no longer names is not named here either.

A host that folds the users of a quarter-hour into `(expired)` does not say which rows went: where a sum of `(expired)`
comes, the named sums of its quarter-hour go, in the same transaction.
"""

from __future__ import annotations

from gua.model import UserSource
from gua.store.codes import USER_SOURCE_CODE
from gua.store.expiry import EXPIRED
from gua_fleet.store.session import Session
from gua_fleet.store.shape import Incoming

_UNATTRIBUTED = USER_SOURCE_CODE[UserSource.UNATTRIBUTED]


def drop_named(session: Session, history: int, sums: Incoming) -> None:
    """Remove the named sums of the slots that have one of `(expired)` among `sums`, rows of user_slot to be put in."""
    expired = session.value("SELECT id FROM person WHERE history = ? AND name = ?", (history, EXPIRED))
    if expired is None:
        return
    slots = {slot for slot, person in zip(sums.column("slot"), sums.column("person"), strict=True) if person == expired}
    session.execute_many(
        "DELETE FROM user_slot WHERE history = ? AND slot = ? AND person <> ? AND person NOT IN"
        " (SELECT id FROM person WHERE history = ? AND source = ?)",
        [(history, slot, expired, history, _UNATTRIBUTED) for slot in sorted(slots)],
    )


def drop_nameless(session: Session, history: int) -> None:
    """Remove the users that nothing refers to any more: the host has dropped them too."""
    session.execute(
        "DELETE FROM person WHERE history = ? AND source <> ? AND name <> ?"
        " AND NOT EXISTS (SELECT 1 FROM process WHERE process.history = person.history AND process.person = person.id)"
        " AND NOT EXISTS (SELECT 1 FROM user_slot WHERE user_slot.history = person.history"
        " AND user_slot.person = person.id)",
        (history, _UNATTRIBUTED, EXPIRED),
    )
