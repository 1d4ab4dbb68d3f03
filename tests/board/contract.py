"""What a board accepts: the JSON Schema of observations, and what its first revision lacks. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

_SCHEMA = json.loads((Path(__file__).parent / "availability.snapshot.v1.schema.json").read_text())
_FORMATS = FormatChecker()


@_FORMATS.checks("date-time", raises=ValueError)
def _is_time(text: object) -> bool:
    """The library leaves times alone where another package is not installed; a time without a zone is none either."""
    if not isinstance(text, str):
        return True
    return datetime.fromisoformat(re.sub(r"[Zz]$", "+00:00", text)).tzinfo is not None and "T" in text


_VALIDATOR = Draft202012Validator(_SCHEMA, format_checker=_FORMATS)


def faults_of(body: Any) -> list[dict[str, Any]]:
    """Everything in an observation that breaks the contract, in the form in which boards answer it."""
    return [{"loc": ["body", *error.path], "msg": error.message} for error in _VALIDATOR.iter_errors(body)]


def additions_in(body: Any) -> Iterator[dict[str, Any]]:
    """What a board of revision 1 refuses in a body that a newer one takes."""
    for number, gpu in enumerate(body["gpus"]):
        if "usageState" in gpu:
            yield {"loc": ["body", "gpus", number, "usageState"], "msg": "Extra inputs are not permitted"}
        for place, process in enumerate(gpu["processes"]):
            where = ["body", "gpus", number, "processes", place]
            if "type" in process:
                yield {"loc": [*where, "type"], "msg": "Extra inputs are not permitted"}
            if process["memoryUsedMb"] is None:
                yield {"loc": [*where, "memoryUsedMb"], "msg": "Input should be a valid integer"}
