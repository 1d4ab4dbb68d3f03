"""A document between two lines that carry a nonce, so that noise around it and cuts inside it are seen.

    gua-frame-begin NONCE
    {"schema": ...}
    gua-frame-end NONCE BYTES SHA256

Login shells, banners and rc files print what they like before and after; only what lies between counts.
"""

from __future__ import annotations

import hashlib
import re

from gua.errors import FrameError, UsageError

NO_FRAME = "the answer holds no frame"
_NONCE = re.compile(r"[0-9a-f]{32}")
_SIZE = re.compile(rb"[0-9]{1,18}")


def check_nonce(nonce: str) -> str:
    """The nonce itself. Raises UsageError unless it is 32 lower-case hexadecimal digits."""
    if not _NONCE.fullmatch(nonce):
        raise UsageError("--frame takes 32 hexadecimal digits")
    return nonce


def wrap_document(document: str, nonce: str) -> str:
    """The framed text of an ASCII document, newline at the end. The document must be ASCII (JSON is)."""
    body = document.strip("\n").encode("ascii")
    digest = hashlib.sha256(body).hexdigest()
    return f"gua-frame-begin {nonce}\n{body.decode('ascii')}\ngua-frame-end {nonce} {len(body)} {digest}\n"


def unwrap_document(output: bytes, nonce: str) -> str:
    """The document framed with `nonce` in a remote command's output.

    Raises FrameError: no frame at all, or a frame that is cut or altered.
    """
    begin, end = f"gua-frame-begin {nonce}\n".encode(), f"\ngua-frame-end {nonce} ".encode()
    # A pty or a Windows-minded relay may have turned newlines into CR LF; JSON escapes its own control characters.
    # Looking for CR alone first is fifty times as fast as replacing nothing.
    if b"\r" in output:
        output = output.replace(b"\r\n", b"\n")
    if begin not in output:
        raise FrameError(NO_FRAME)
    # from behind: the closing line says how long the document before it is
    stop = output.rfind(end)
    fields = output[stop + len(end) :].split(b"\n", 1)[0].split() if stop >= 0 else []
    if len(fields) != 2:
        raise FrameError("the answer was cut before its closing line")
    start = stop - int(fields[0]) if _SIZE.fullmatch(fields[0]) else -1
    body = memoryview(output)[max(start, 0) : stop]
    opened = start >= len(begin) and output.startswith(begin, start - len(begin))
    if not opened or fields[1] != hashlib.sha256(body).hexdigest().encode():
        raise FrameError("the answer was altered on its way: length or checksum does not fit")
    try:
        return str(body, "ascii")
    except UnicodeDecodeError as exc:
        raise FrameError("the answer is not ASCII") from exc
