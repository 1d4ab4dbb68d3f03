"""The fleet report as a mail for `sendmail -t`: the tables as text, the HTML attached. Pure."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta, timezone
from email import policy
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import getaddresses

from gua.errors import UsageError
from gua.units import parse_time_ms
from gua_fleet import rows_text
from gua_fleet.model import Document
from gua_fleet.render_html import render_html
from gua_fleet.render_table import render_fleet

# As wide as mail is, so that no line is broken on its way; the tables need 80.
_WIDTH = 80


def render_mail(
    document: Document,
    *,
    to: Collection[str],
    sender: str | None = None,
    by: Collection[str] = (),
    heat: str = "idle-held",
) -> bytes:
    """The message with plain line ends. to, sender: addresses, `Name <a@b>` too. Without sender, sendmail adds From.

    Raises UsageError for what is no address.
    """
    message = EmailMessage(policy=policy.default)
    message["To"] = _addresses(to, "--mail-to")
    if sender is not None:
        message["From"] = _addresses([sender], "--mail-from")
    message["Subject"] = _subject(document)
    message["Date"] = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(
        milliseconds=parse_time_ms(document["generated_at"])
    )
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(render_fleet(document, width=_WIDTH, by=by, heat=heat))
    name = f"gpu-use-{document['window']['until'][:10]}.html"
    page = render_html(document, by=by, heat=heat)
    message.add_attachment(
        page.encode("utf-8"), maintype="text", subtype="html", filename=name, params={"charset": "utf-8"}
    )
    return message.as_bytes()


def check_addresses(to: Collection[str], sender: str | None) -> None:
    """Raise UsageError for what is no address: better before all hosts are asked than after."""
    _addresses(to, "--mail-to")
    if sender is not None:
        _addresses([sender], "--mail-from")


def _subject(document: Document) -> str:
    silent = sum(host["failed"] for host in document["hosts"])
    missing = f"; no answer from {silent} of {len(document['hosts'])} hosts" if silent else ""
    return f"GPU use: {rows_text.headline_text(document)}{missing}"


def _addresses(texts: Collection[str], option: str) -> tuple[Address, ...]:
    try:
        parts = getaddresses(list(texts))
        found = tuple(Address(display_name=name, addr_spec=address) for name, address in parts)
        named = all(one.username and one.domain for one in found)
        if found and named and all(text.isprintable() for text in texts):
            return found
    except (ValueError, IndexError, MessageError):
        pass
    raise UsageError(f"{option} {', '.join(texts)!r}: is no address such as ops@example.org")
