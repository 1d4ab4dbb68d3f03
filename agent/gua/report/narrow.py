"""A report that names one person only: everybody else's rows go, the host's sums stay whole. Pure."""

from __future__ import annotations

from gua.report.document import Card, Report


def narrowed(report: Report, user: str) -> Report:
    """The report with only this user's rows, holds and processes."""
    return {
        **report,
        "user": user,
        "users": [one for one in report["users"] if one["user"] == user],
        "holds": [one for one in report["holds"] if one["user"] == user],
        "cards": [_of_user(card, user) for card in report["cards"]],
    }


def _of_user(card: Card, user: str) -> Card:
    now = card["now"]
    if now is None:
        return card
    return {**card, "now": {**now, "holders": [one for one in now["holders"] if one["user"] == user]}}
