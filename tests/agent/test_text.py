import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.text import SHOWN_LIMIT, decode_bytes, shown, storable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("python3", "python3"),
        ("EXAMPLE\\alice", "EXAMPLE\\alice"),
        ("名前", "名前"),
        ("příbor", "příbor"),
        ("\x1b]0;x\x07<b>", "\\x1b]0;x\\x07<b>"),
        ("a\nb\tc", "a\\x0ab\\x09c"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("a\u2028b", "a\\u2028b"),
        ("\udcff", "\\xff"),
        ("", ""),
    ],
)
def test_shown_escapes_what_a_terminal_would_obey(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_shown_keeps_a_name_of_64_characters_and_cuts_a_longer_one() -> None:
    assert shown("a" * 64) == "a" * 64
    assert shown("a" * 65) == "a" * 61 + "..."


def test_different_bytes_stay_different_names() -> None:
    assert decode_bytes(b"m\xfcller") != decode_bytes(b"m\xe4ller")
    assert decode_bytes("müller".encode()) == "müller"


@given(st.text())
def test_shown_text_is_one_short_line_without_control_characters(text: str) -> None:
    line = shown(text)
    assert len(line) <= SHOWN_LIMIT
    assert all(unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} for character in line)


@given(st.binary())
def test_decoded_bytes_go_through_json_and_utf8(raw: bytes) -> None:
    text = decode_bytes(raw)
    assert json.loads(json.dumps(text)) == text
    assert text.encode("utf-8").decode("utf-8") == text
    assert storable(raw.decode("utf-8", "surrogateescape")) == text
