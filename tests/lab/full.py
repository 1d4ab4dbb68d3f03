"""Marks of what takes too long for every landing."""

from __future__ import annotations

import os

import pytest

FULL = [
    pytest.mark.lab,
    pytest.mark.lab_full,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(os.environ.get("GUA_LAB_FULL") != "1", reason="takes long: `make test-lab` runs it"),
]
