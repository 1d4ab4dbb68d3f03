"""What became of each host's last pull, kept beside its history."""

from __future__ import annotations

from collections.abc import Sequence

from gua_fleet.model import HostResult
from gua_fleet.store.session import Session


def note_outcomes(session: Session, results: Sequence[HostResult], now_ms: int) -> None:
    """Remember the outcome of every host, of those too that never answered."""
    rows = [
        (result.host.name, now_ms, result.outcome_text, None if result.detail is None else result.detail[:400])
        for result in results
    ]
    with session.writing():
        session.execute_many(
            "INSERT INTO host (name, asked_ms, outcome, detail) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET"
            " asked_ms = excluded.asked_ms, outcome = excluded.outcome, detail = excluded.detail",
            rows,
        )
