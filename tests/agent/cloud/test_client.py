"""The client against real sockets."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from gua.cloud.client import BoardClient
from gua.cloud.payload import Sender, to_payload
from gua.cloud.token import Token
from gua.errors import BoardFailed, PayloadRefused, TokenRefused
from tests.agent.cloud.enrolled import AGENT_TOKEN
from tests.agent.store.ticks import MONDAY, card, tick
from tests.board import Authority, Board, Misdeed, running_board
from tests.board.tunnel import running_tunnel

TOKEN = Token(AGENT_TOKEN)
BODY = to_payload(tick(MONDAY, card()), Sender("node-1", "", ""), 2).body
# Long enough for a loaded machine, where the answer does come.
PATIENT_S = 60.0


def push(url: str, timeout_s: float = PATIENT_S, overall_s: float = PATIENT_S) -> None:
    BoardClient(url, timeout_s, overall_s).push(BODY, TOKEN)


def failure(url: str, timeout_s: float = PATIENT_S, overall_s: float = PATIENT_S) -> BoardFailed:
    with pytest.raises(BoardFailed) as caught:
        push(url, timeout_s, overall_s)
    assert "\n" not in str(caught.value)
    assert AGENT_TOKEN not in repr(caught.value) + str(caught.value)
    return caught.value


def test_a_state_is_taken_with_the_token_in_its_header(board: Board) -> None:
    push(board.url)
    assert board.taken == [BODY]
    assert board.paths == [("/agent/v1/observations", f"Bearer {AGENT_TOKEN}")]


@pytest.mark.parametrize(
    ("misdeed", "kind", "words"),
    [
        (Misdeed.UNAUTHORIZED, TokenRefused, "HTTP 401: no, because of Bearer (token)"),
        (Misdeed.FORBIDDEN, TokenRefused, "HTTP 403"),
        (Misdeed.TOO_LARGE, PayloadRefused, "HTTP 413"),
        (Misdeed.UNPROCESSABLE, PayloadRefused, "HTTP 422"),
        (Misdeed.TOO_MANY, BoardFailed, "HTTP 429"),
        (Misdeed.BROKEN, BoardFailed, "HTTP 500"),
        (Misdeed.REDIRECT, BoardFailed, "not followed"),
        (Misdeed.LOGIN_PAGE, BoardFailed, "login page"),
        (Misdeed.NOT_JSON, BoardFailed, "no JSON"),
        (Misdeed.RESET, BoardFailed, "connection reset"),
        (Misdeed.NOT_HTTP, BoardFailed, "does not speak HTTP"),
    ],
)
def test_a_misdeed_is_told_in_words(board: Board, misdeed: Misdeed, kind: type, words: str) -> None:
    board.misdeed = misdeed
    error = failure(board.url)
    assert type(error) is kind
    assert words in str(error)
    assert (len(board.paths), board.taken) == (1, [])  # neither repeated nor followed


@pytest.mark.parametrize(
    ("misdeed", "told"), [(Misdeed.REDIRECT, f"https://{AGENT_TOKEN}.example.org/"), (Misdeed.UNPROCESSABLE, "%s")]
)
def test_no_part_of_an_error_bears_the_token(board: Board, misdeed: Misdeed, told: str) -> None:
    """Nor does what is kept in it to be looked at later."""
    board.misdeed, board.detail, board.location = misdeed, told, told
    error = failure(board.url)
    assert AGENT_TOKEN.lower() not in f"{error} {vars(error)} {error.args}".lower()


def test_a_board_may_ask_for_patience(board: Board) -> None:
    board.misdeed = Misdeed.TOO_MANY
    assert failure(board.url).retry_after_s == 120


def test_a_silent_board_is_given_up(board: Board) -> None:
    board.misdeed = Misdeed.SILENCE
    assert "does not answer in time" in str(failure(board.url, timeout_s=0.2))


@pytest.mark.parametrize("misdeed", [Misdeed.DRIBBLED_HEADER, Misdeed.DRIBBLED_BODY])
def test_a_board_that_answers_by_letters_is_cut_off(board: Board, misdeed: Misdeed) -> None:
    """As often as it tries: nothing is left behind that could be in the way of the next attempt."""
    board.misdeed = misdeed
    client = BoardClient(board.url, PATIENT_S, 0.3)
    for _ in range(5):
        with pytest.raises(BoardFailed, match=r"no complete answer within 0\.3 s|in time"):
            client.push(BODY, TOKEN)


def test_nobody_there_is_told(board: Board) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert "connection refused" in str(failure(f"http://127.0.0.1:{taken.getsockname()[1]}"))


def test_a_name_that_is_none_is_told() -> None:
    assert "cannot be reached" in str(failure(f"http://{'a' * 70}.invalid"))


def test_a_trusted_certificate_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    with running_board(context=authority.server_context("localhost")) as board:
        board.agents[AGENT_TOKEN] = "host-1"
        assert "its certificate is not trusted" in str(failure(board.url))
        assert board.paths == []
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
            with monkeypatch.context() as environment:
                environment.setenv(name, str(authority.bundle))
                push(board.url)
    assert len(board.taken) == 2


def test_a_certificate_for_another_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority.bundle))
    with running_board(context=authority.server_context("board.example.org")) as board:
        assert "its certificate is not trusted" in str(failure(board.url))
    assert board.paths == []


def test_authorities_that_are_not_there_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torn.pem").write_text("-----BEGIN CERTIFICATE-----\nMIIB")
    (tmp_path / "empty.pem").write_text("")
    told = {"nowhere.pem": "is not there", "torn.pem": "no certificates", "empty.pem": "no certificates"}
    for name, words in told.items():
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / name))
        error = str(failure("https://127.0.0.1:9"))
        assert f"REQUESTS_CA_BUNDLE: {tmp_path / name}" in error
        assert words in error


def test_the_environments_proxy_is_used(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    """The board stands in for a proxy: it is asked for the whole URL of another host."""
    monkeypatch.setenv("http_proxy", board.url)
    push("http://board.example.org")
    assert board.paths[0][0] == "http://board.example.org/agent/v1/observations"
    monkeypatch.setenv("no_proxy", "example.org")
    assert "cannot be reached" in str(failure("http://nowhere.example.org:9"))
    assert len(board.paths) == 1


@pytest.mark.parametrize("name", ["http_proxy", "ALL_PROXY"])
def test_what_stays_on_this_machine_unencrypted_is_shown_to_no_proxy(
    board: Board, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A second board stands in for the proxy, which could read the token."""
    with running_board() as proxy:
        monkeypatch.setenv(name, proxy.url)
        push(board.url)
    assert (len(board.taken), proxy.paths) == (1, [])


def test_a_proxy_of_another_kind_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "socks5h://127.0.0.1:9")
    assert "SOCKS" in str(failure("https://board.example.org"))


def test_a_certificate_is_verified_behind_a_proxy_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    with running_board(context=authority.server_context("localhost")) as board, running_tunnel() as tunnel:
        board.agents[AGENT_TOKEN] = "host-1"
        monkeypatch.setenv("https_proxy", f"http://alice:hunter2@127.0.0.1:{tunnel.port}")
        assert "its certificate is not trusted" in str(failure(board.url))
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.bundle))
        push(board.url)
        tunnel.refuses = True
        refused = str(failure(board.url))
    assert (len(board.taken), tunnel.asked) == (1, [board.url.split("/")[-1]] * 3)
    assert "the proxy" in refused
    assert "hunter2" not in refused


def test_the_password_file_is_not_used(board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login alice password hunter2\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    push(board.url)
    assert board.paths[0][1] == f"Bearer {AGENT_TOKEN}"
    BoardClient(board.url).probe(None)
    assert board.paths[1][1] is None


def test_what_a_claim_tells_of_the_host_is_short_and_plain_text(board: Board) -> None:
    """A name on the command line may be any bytes; halves of letters are no text that a board could keep."""
    board.one_time.add("gua_enroll_once")
    BoardClient(board.url).claim(
        Token("gua_enroll_once"), {"hostname": "n\udcff" + "o" * 300, "agentVersion": "1", "driverVersion": None}
    )
    (claim,) = board.claims
    assert claim["hostname"].startswith("n\\xffo")
    assert len(claim["hostname"]) == 255
    assert set(claim) == {"enrollmentToken", "hostname", "agentVersion"}


def test_a_slow_board_is_waited_for(board: Board) -> None:
    board.misdeed = Misdeed.SLOW
    push(board.url)
    assert board.taken == [BODY]


def test_a_probe_leaves_the_state_alone(board: Board) -> None:
    client = BoardClient(board.url)
    client.probe(TOKEN)
    client.probe(None)
    with pytest.raises(TokenRefused):
        client.probe(Token("gua_agent_of_nobody"))
    board.misdeed = Misdeed.LOGIN_PAGE
    with pytest.raises(BoardFailed, match="login page"):
        client.probe(TOKEN)
    assert board.taken == []
