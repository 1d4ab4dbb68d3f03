"""How commands put documents on stdout, and the option that frames them for a controller."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

from gua.errors import GuaError, UsageError
from gua.frames import check_nonce, wrap_document


def add_frame_option(parser: argparse.ArgumentParser) -> None:
    """`--frame NONCE`, on every command the controller calls (hidden: it is not for people)."""
    parser.add_argument("--frame", metavar="NONCE", type=_nonce, help=argparse.SUPPRESS)


def add_format_option(parser: argparse._ActionsContainer, people: str = "text", more: tuple[str, ...] = ()) -> None:
    """`--format` and `--json`; the choice is `options.format`. people: what the form for people is called."""
    words = " or ".join(["json", *more])
    parser.add_argument(
        "--format", choices=(people, "json", *more), default=people, help=f"{people} for people (default), {words}"
    )
    parser.add_argument("--json", dest="format", action="store_const", const="json", help="short for --format json")


def _nonce(text: str) -> str:
    try:
        return check_nonce(text)
    except UsageError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc


def document_text(document: Mapping[str, Any], *, compact: bool = False) -> str:
    """The document as ASCII: for people, indented and with a newline at its end; or compact, on one line."""
    import json  # a report in words needs none

    return json.dumps(document, separators=(",", ":")) if compact else json.dumps(document, indent=1) + "\n"


def emit_document(document: Mapping[str, Any], frame: Optional[str]) -> None:
    """Write one JSON document to stdout, ASCII only; framed when a nonce is given, indented for people when not."""
    if frame is None:
        sys.stdout.write(document_text(document))
    else:
        sys.stdout.write(wrap_document(document_text(document, compact=True), frame))


def write_atomically(path: Path, text: str) -> None:
    """Write the file whole or not at all: readers see the old one or the new one. Raises GuaError with the cause."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with open(beside, "x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, path)
    except OSError as exc:
        raise GuaError(f"{path}: cannot be written: {exc.strerror}; name another file or make room") from exc
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


def emit_error(error: GuaError, frame: Optional[str]) -> None:
    """Answer a controller with a framed `gua.error/1` document, so it need not read prose; people get stderr.

    {"schema": "gua.error/1", "code": "database_missing", "message": one line, "exit_status": 2}
    """
    if frame is not None:
        document = {
            "schema": "gua.error/1",
            "code": error.code,
            "message": str(error),
            "exit_status": int(error.exit_status),
        }
        emit_document(document, frame)
