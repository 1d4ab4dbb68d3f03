"""The lab as a fixture: skipped with its reason where it cannot run, a failure there when GUA_LAB_REQUIRED=1."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest

from tests.lab.harness import Lab, open_lab
from tests.lab.needs import LabUnavailable


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with lab_or_skip() as lab:
        yield lab


@contextmanager
def lab_or_skip(suite: str | None = None) -> Iterator[Lab]:
    """A lab of `suite`, where one can run."""
    try:
        opened = open_lab(suite)
        lab = opened.__enter__()
    except LabUnavailable as exc:
        skip_or_fail(exc)
    try:
        yield lab
    finally:
        opened.__exit__(None, None, None)


def skip_or_fail(reason: LabUnavailable) -> NoReturn:
    """End the test, as a failure where the lab must run."""
    if os.environ.get("GUA_LAB_REQUIRED") == "1":
        pytest.fail(f"GUA_LAB_REQUIRED=1, and {reason}")
    pytest.skip(str(reason))
