"""The evidence behind a figure, in words. It says what was observed, and charges nobody. Pure."""

from __future__ import annotations

from gua.ledger.explained import Explained
from gua.ledger.page import Page
from gua.ledger.render_explain_card import card_page
from gua.ledger.render_explain_user import user_page
from gua.report.zones import find_zone


def explain_page(document: Explained) -> Page:
    """The document as a page."""
    zone = find_zone(document["tz"])
    if document["user"] is not None:
        return user_page(document, document["user"], zone)
    assert document["card"] is not None
    return card_page(document, document["card"], zone)
