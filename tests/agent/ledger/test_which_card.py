"""Cards by index, UUID or a beginning that only one has."""

from __future__ import annotations

from typing import Optional

import pytest

from gua.errors import UsageError
from gua.ledger.which_card import find_device
from gua.store.devices import DeviceRow


def device(id: int, uuid: str, index: Optional[int], retired_ms: Optional[int] = None) -> DeviceRow:
    return DeviceRow(id, uuid, index, None, "A100", 1, None, None, 0, retired_ms)


CARDS = (
    device(1, "GPU-1a2b3c4d-0000", 0, retired_ms=5),
    device(2, "GPU-1a2b9999-0000", 0),
    device(3, "GPU-77777777-0000", 1),
    device(4, "GPU-88888888-0000", 3, retired_ms=5),
)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("0", 2), ("1", 3), ("GPU-77777777-0000", 3), ("7777", 3), ("gpu-7", 3), ("GPU-1a2b3", 1), ("3", 4)],
)
def test_a_card_is_found_by_what_people_write(wanted: str, found: int) -> None:
    assert find_device(CARDS, wanted).id == found


def test_an_ambiguous_or_unknown_card_is_one_line_that_names_the_cards() -> None:
    with pytest.raises(UsageError, match=r"could be x GPU-1a2b3c4d \(retired\), 0 GPU-1a2b9999: write more"):
        find_device(CARDS, "1a2b")
    for wanted in ("9", "", "GPU-x", "\x1b[31m"):
        with pytest.raises(UsageError, match="no such card; this history has x GPU-1a2b3c4d") as caught:
            find_device(CARDS, wanted)
        assert "\n" not in str(caught.value)
        assert "\x1b" not in str(caught.value)
    with pytest.raises(UsageError, match="has no card yet"):
        find_device((), "0")
