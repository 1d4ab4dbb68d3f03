"""Tokens, which never appear where text goes: logs, messages, exceptions, `repr`."""

from __future__ import annotations

import hmac
import re

# Goes into an HTTP header as it is. What does not fit there must not get there: the error would quote it.
_FIT = re.compile(r"[\x21-\x7e]{1,4096}")
# Fewer letters in common with a token are chance.
_TELLING = 8


class Token:
    """A secret. Only `reveal` gives its text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        """Raises ValueError, without the text, for what can be no token."""
        if not _FIT.fullmatch(text):
            raise ValueError("a token is one word of plain letters, digits and signs")
        self._text = text

    def reveal(self) -> str:
        """The secret itself, for the wire and the file only."""
        return self._text

    def __repr__(self) -> str:
        return "Token(hidden)"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Token) and hmac.compare_digest(self._text, other._text)

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> str:
        raise TypeError("a token is not copied about")

    def hide_in(self, text: str) -> str:
        """`text` with every part of the token that tells anything replaced; a board may quote what it refuses."""
        size = min(_TELLING, len(self._text))
        parts = {self._text[at : at + size] for at in range(len(self._text) - size + 1)}
        told = [any(text[at : at + size] in parts for at in _around(place, size)) for place in range(len(text))]
        return re.sub(r"\0+", "(token)", "".join("\0" if secret else letter for letter, secret in zip(text, told)))


def _around(place: int, size: int) -> range:
    """Where a part of this size that covers the place may begin."""
    return range(max(0, place - size + 1), place + 1)
