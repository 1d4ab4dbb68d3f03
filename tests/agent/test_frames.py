"""A framed document survives noise around it, and nothing survives a cut or a change."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.errors import FrameError, UsageError
from gua.frames import check_nonce, unwrap_document, wrap_document

NONCE = "0123456789abcdef" * 2
OTHER = "f" * 32
DOCUMENT = json.dumps({"schema": "gua.report/1", "users": ["名前", "a\nb"]})
FRAMED = wrap_document(DOCUMENT, NONCE).encode()

noise = st.binary(max_size=200).filter(lambda text: NONCE.encode() not in text)


@given(before=noise, after=noise)
def test_noise_before_and_after_is_ignored(before: bytes, after: bytes) -> None:
    assert unwrap_document(before + FRAMED + after, NONCE) == DOCUMENT


def test_newlines_turned_into_cr_lf_are_understood() -> None:
    assert unwrap_document(FRAMED.replace(b"\n", b"\r\n"), NONCE) == DOCUMENT


@pytest.mark.parametrize("after", [FRAMED, FRAMED[:-80], b"\ngua-frame-begin "])
def test_an_answer_that_comes_twice_or_begins_again_is_taken_once(after: bytes) -> None:
    assert unwrap_document(FRAMED + after, NONCE) == DOCUMENT


@pytest.mark.parametrize("size", [b"0", b"-1", b"1e3", b"9" * 5000, str(len(DOCUMENT) + 200).encode()])
def test_a_length_that_does_not_lead_back_to_the_opening_line_is_noticed(size: bytes) -> None:
    closing = FRAMED.rindex(b"gua-frame-end")
    with pytest.raises(FrameError, match="altered"):
        unwrap_document(FRAMED[:closing] + FRAMED[closing:].replace(str(len(DOCUMENT)).encode(), size), NONCE)


@given(st.integers(min_value=0, max_value=len(FRAMED) - 2))
def test_a_cut_anywhere_is_noticed(length: int) -> None:
    with pytest.raises(FrameError):
        unwrap_document(FRAMED[:length], NONCE)


@given(st.integers(min_value=0, max_value=len(DOCUMENT) - 1))
def test_one_changed_byte_in_the_document_is_noticed(position: int) -> None:
    start = FRAMED.index(b"{")
    altered = bytearray(FRAMED)
    altered[start + position] ^= 1
    with pytest.raises(FrameError):
        unwrap_document(bytes(altered), NONCE)


def test_a_frame_with_another_nonce_is_not_ours() -> None:
    with pytest.raises(FrameError, match="no frame"):
        unwrap_document(wrap_document(DOCUMENT, OTHER).encode(), NONCE)


@pytest.mark.parametrize("nonce", ["", "a" * 31, "A" * 32, "g" * 32, "a" * 33, "a" * 31 + "\n", "$(reboot)" + "a" * 23])
def test_a_nonce_is_32_hexadecimal_digits_and_nothing_else(nonce: str) -> None:
    with pytest.raises(UsageError):
        check_nonce(nonce)
