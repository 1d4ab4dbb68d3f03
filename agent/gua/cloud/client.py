"""The two requests of the board's contract, and what its answers mean.

POST /agent/v1/enrollments/claim    a one-time token for this host's own
POST /agent/v1/observations         the newest state
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional
from urllib.parse import urlsplit

import requests

from gua import __version__
from gua.cloud.reasons import why_unreachable
from gua.cloud.token import Token
from gua.cloud.transport import Lines, Transport
from gua.errors import BoardFailed, GuaError, PayloadRefused, TokenRefused
from gua.text import shown

CLAIM_PATH = "/agent/v1/enrollments/claim"
OBSERVATIONS_PATH = "/agent/v1/observations"
# For connecting and for every single read: see the contract.
TIMEOUT_S = 10.0
# For all of it. A board that answers a letter at a time would keep within the other for ever.
OVERALL_S = 30.0
# The board's answers are short; whatever is longer is somebody else's.
_LARGEST_ANSWER_BYTES = 64 * 1024
# Attempts that cannot be cut short (a name service that hangs) are left behind, but not without end.
_MOST_LEFT_BEHIND = 3

_SUCCESS = (200, 201, 202)
_REFUSED = (400, 413, 422)


@dataclass(frozen=True)
class Answer:
    """What came back. retry_after_s: None when the board did not say."""

    status: int
    content_type: str
    location: str
    retry_after_s: Optional[int]
    body: bytes


class BoardClient:
    """Speaks to one board. May be used by one thread at a time."""

    def __init__(self, server_url: str, timeout_s: float = TIMEOUT_S, overall_s: float = OVERALL_S) -> None:
        self._server_url = server_url
        self._timeout_s, self._overall_s = timeout_s, overall_s
        self._transport = Transport()
        self._left_behind: list[threading.Thread] = []

    def claim(self, enrollment_token: Token, facts: Mapping[str, Optional[str]]) -> Mapping[str, Any]:
        """The answer to a claim. facts: hostname, agentVersion, driverVersion, None where unknown.

        Raises BoardFailed; TokenRefused is for this host's own token and not raised here.
        """
        body = {name: shown(text, limit) for name, limit in _FACTS.items() for text in [facts.get(name)] if text}
        answer = self._post(CLAIM_PATH, {"enrollmentToken": enrollment_token.reveal(), **body}, None)
        _check(answer, self._server_url, enrollment_token, claiming=True)
        document = _document(answer.body)
        if not document:
            raise BoardFailed(f"{self._server_url} answered something else than a claim; is that the board's URL?")
        return document

    def push(self, payload: Mapping[str, Any], token: Token) -> None:
        """Hand over a state. Raises BoardFailed, among them TokenRefused and PayloadRefused."""
        _check(self._post(OBSERVATIONS_PATH, payload, token), self._server_url, token)

    def probe(self, token: Optional[Token]) -> None:
        """Whether a board answers there, and does not refuse the token; its state is left as it is.

        Raises BoardFailed, TokenRefused.
        """
        answer = self._post(OBSERVATIONS_PATH, {}, token)
        if token is None and answer.status in (401, 403):
            return
        try:
            _check(answer, self._server_url, token)
        except PayloadRefused:
            return  # of course it is: an empty body is no state

    def _post(self, path: str, body: Mapping[str, Any], token: Optional[Token]) -> Answer:
        """The answer, within the overall time. Raises BoardFailed."""
        self._left_behind = [thread for thread in self._left_behind if thread.is_alive()]
        if len(self._left_behind) >= _MOST_LEFT_BEHIND:
            raise BoardFailed(f"{self._server_url}: earlier attempts still hang")
        lines, until_s = Lines(), time.monotonic() + self._overall_s
        attempt = _Attempt(lambda: self._exchange(path, body, token, lines, until_s))
        attempt.start()
        attempt.join(self._overall_s)
        if attempt.is_alive():
            lines.cut()
            self._left_behind.append(attempt)
            raise _unanswered(f"{self._server_url}: no complete answer within {self._overall_s:g} s")
        if attempt.reason is not None:
            raise _unanswered(f"{self._server_url} cannot be reached: {attempt.reason}")
        assert attempt.answer is not None
        return attempt.answer

    def _exchange(
        self, path: str, body: Mapping[str, Any], token: Optional[Token], lines: Lines, until_s: float
    ) -> Answer:
        headers = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": f"gua/{__version__}",
        }
        if token is not None:
            headers["Authorization"] = f"Bearer {token.reveal()}"
        data = json.dumps(body, separators=(",", ":"), allow_nan=False).encode("ascii")
        with self._transport.post(self._server_url + path, data, headers, self._timeout_s, lines) as response:
            return Answer(
                status=response.status_code,
                content_type=response.headers.get("Content-Type", ""),
                location=response.headers.get("Location", ""),
                retry_after_s=_seconds(response.headers.get("Retry-After", "")),
                body=_read_body(response, until_s),
            )


# What a claim may tell of the host, and how long the contract lets each be.
_FACTS = {"hostname": 255, "agentVersion": 64, "driverVersion": 64}


class _Attempt(threading.Thread):
    """One exchange in a thread that the program's end does not wait for."""

    def __init__(self, exchange: Any) -> None:
        super().__init__(name="gua-board", daemon=True)
        self._exchange = exchange
        self.answer: Optional[Answer] = None
        self.reason: Optional[str] = None

    def run(self) -> None:
        try:
            self.answer = self._exchange()
        except GuaError as exc:
            self.reason = str(exc)
        # UnicodeError: a host name that is none. The exceptions of the library hold the token, so none goes further.
        except (requests.RequestException, OSError, ValueError) as exc:
            self.reason = why_unreachable(exc)


def _unanswered(message: str) -> BoardFailed:
    failure = BoardFailed(message)
    failure.answered = False
    return failure


def _read_body(response: requests.Response, until_s: float) -> bytes:
    body = b""
    # By single letters: a larger read would wait until it is full
    for part in response.iter_content(1):
        body += part
        if len(body) >= _LARGEST_ANSWER_BYTES:
            break
        if time.monotonic() > until_s:
            raise TimeoutError
    return body


def _seconds(text: str) -> Optional[int]:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _check(answer: Answer, server_url: str, token: Optional[Token], *, claiming: bool = False) -> None:
    """Raise what the answer means, unless it is a success."""
    status = answer.status
    if status in _SUCCESS:
        _check_success(answer, server_url)
        return
    if 300 <= status < 400:
        raise BoardFailed(
            f"{server_url} sends elsewhere ({_origin(_hidden(answer.location, token))}), which is not followed; "
            "enrol with the URL that the board itself answers at"
        )
    detail = _detail(answer.body)
    told = f"HTTP {status}" + (f": {shown(_hidden(detail, token), 300)}" if detail else "")
    if status in (401, 403) and not claiming:
        raise TokenRefused(f"{server_url} refuses this host's token ({told}); run `gua enroll --force` with a new one")
    if status in _REFUSED and not claiming:
        raise PayloadRefused(f"{server_url} refuses what was sent ({told})", _names(answer.body, token))
    failure = BoardFailed(f"{server_url} answered {told}")
    failure.retry_after_s = answer.retry_after_s
    raise failure


def _check_success(answer: Answer, server_url: str) -> None:
    """A login page or a proxy's greeting has a 200 too."""
    html = "html" in answer.content_type.lower()
    if html or (answer.body.strip() and _document(answer.body) is None):
        kind = "a web page" if html else "something that is no JSON"
        raise BoardFailed(f"{server_url} answered with {kind} (HTTP {answer.status}); is a login page in between?")


def _document(body: bytes) -> Optional[Mapping[str, Any]]:
    """The JSON object of an answer; None when it is none."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _origin(location: str) -> str:
    """Scheme and host of a redirect's target: the rest may hold anything."""
    try:
        parts = urlsplit(location)
        return shown(f"{parts.scheme}://{parts.hostname}", 200) if parts.hostname else "another path"
    except ValueError:
        return "nowhere"


def _hidden(text: str, token: Optional[Token]) -> str:
    return text if token is None else token.hide_in(text)


def _detail(body: bytes) -> str:
    """What an error says, as text; empty when it says nothing readable. What was sent is not quoted."""
    detail = (_document(body) or {}).get("detail")
    if isinstance(detail, str):
        return detail
    return "; ".join(f"{_path(entry)}: {entry.get('msg', '')}" for entry in _entries(detail))


def _names(body: bytes, token: Optional[Token]) -> tuple[str, ...]:
    """What a refusal's detail names: paths such as `gpus.0.usageState`, or the words of its text."""
    detail = (_document(body) or {}).get("detail")
    found = [detail] if isinstance(detail, str) else [_path(entry) for entry in _entries(detail)]
    return tuple(_hidden(name, token) for name in found)


def _entries(detail: Any) -> Sequence[Mapping[str, Any]]:
    """Entries of a list such as `[{"loc": ["body", "gpus", 0, "usageState"], "msg": "Extra inputs ..."}]`."""
    return [entry for entry in detail if isinstance(entry, dict)] if isinstance(detail, list) else []


def _path(entry: Mapping[str, Any]) -> str:
    place = entry.get("loc")
    return ".".join(str(part) for part in place) if isinstance(place, list) else ""
