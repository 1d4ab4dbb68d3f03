import pytest

from gua.cloud.server_url import check_server_url
from gua.errors import UsageError


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://board.example.org", "https://board.example.org"),
        (" https://board.example.org/ \n", "https://board.example.org"),
        ("https://board.example.org:8443/gua/", "https://board.example.org:8443/gua"),
        ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://127.9.9.9", "http://127.9.9.9"),
        ("http://[::1]:80", "http://[::1]:80"),
    ],
)
def test_absolute_urls_are_taken(text: str, url: str) -> None:
    assert check_server_url(text, allow_http=False) == url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "board.example.org",
        "//board.example.org",
        "ftp://board.example.org",
        "file:///etc/passwd",
        "https://",
        "https:board.example.org",
        "https://:443",
        "https://board.example.org:99999",
        "https://board.example.org:port",
        "https://[2001:db8::1",
        "https://board.example.org/?a=b",
        "https://board.example.org/#x",
        "https://board.example.org/a b",
        "https://board.example.org\\evil",
        "https://bo\x1bard.example.org",
    ],
)
def test_what_is_no_address_of_a_board_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_server_url(text, allow_http=True)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_a_password_in_the_url_is_refused_and_not_shown() -> None:
    with pytest.raises(UsageError) as caught:
        check_server_url("https://alice:hunter2@board.example.org", allow_http=False)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("host", ["board.example.org", "10.0.0.1", "localhost.example.org", "127.0.0.1.example.org"])
def test_an_unencrypted_board_must_be_insisted_on(host: str) -> None:
    with pytest.raises(UsageError, match="--allow-http"):
        check_server_url(f"http://{host}", allow_http=False)
    assert check_server_url(f"http://{host}", allow_http=True) == f"http://{host}"
