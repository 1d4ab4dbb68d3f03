import pickle
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gua.cloud.token import Token

SECRETS = st.text(string.ascii_letters + string.digits + "_-.", min_size=1, max_size=60)


def test_nothing_that_makes_text_of_it_shows_it() -> None:
    token = Token("gua_agent_secret")
    shown = [repr(token), str(token), f"{token}", f"{token!r:>40}", repr({"t": token}), repr([token])]
    assert not any("secret" in text for text in shown)
    assert token.reveal() == "gua_agent_secret"
    with pytest.raises(TypeError):
        pickle.dumps(token)


def test_two_of_one_text_are_one_token() -> None:
    """So that an enrolment that was read again is known to be the same."""
    assert Token("gua_a") == Token("gua_a")
    assert Token("gua_a") != Token("gua_b")
    assert len({Token("gua_a"), Token("gua_a")}) == 1


@pytest.mark.parametrize("text", ["", "two words", "line\nbreak", "tokén", "tab\t", "x" * 5000])
def test_what_fits_no_header_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="a token is one word") as caught:
        Token(text)
    assert text == "" or text not in str(caught.value)


@settings(deadline=None)
@given(SECRETS, st.text(max_size=20), st.text(max_size=20), st.data())
def test_no_telling_part_of_it_is_left_in_a_text(secret: str, before: str, after: str, data: st.DataObject) -> None:
    """Whole, or a part of eight letters and more; shorter ones may be a word of the language."""
    begin = data.draw(st.integers(0, max(0, len(secret) - 8)))
    part = secret[begin : begin + data.draw(st.integers(min(8, len(secret)), 60))]
    left = Token(secret).hide_in(before + part + after).replace("(token)", "\n")
    size = min(8, len(secret))
    assert not any(secret[at : at + size] in left for at in range(len(secret) - size + 1))


def test_what_has_nothing_of_it_stays_as_it_is() -> None:
    assert Token("gua_agent_secret").hide_in("host is not known") == "host is not known"
    assert Token("gua_agent_secret").hide_in("token gua_agent_secret.") == "token (token)."
