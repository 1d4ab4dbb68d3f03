from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gua.export.columns import pack_column, unpack_column

VALUES = st.one_of(st.none(), st.integers(-(1 << 62), 1 << 62), st.text(max_size=5))


@settings(max_examples=50, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=30))
def test_a_column_comes_back_as_it_went(values: list[Any]) -> None:
    assert unpack_column(pack_column(values), len(values)) == values


def test_each_form_is_taken_where_it_is_shortest() -> None:
    assert pack_column([7, 7, 7]) == {"same": 7}
    assert pack_column([1_000_000, 1_000_001, 1_000_003]) == {"steps": [1_000_000, 1, 2]}
    assert pack_column([1, 900, 2, 800]) == [1, 900, 2, 800]
    assert pack_column([1, None]) == [1, None]
    assert pack_column([None, None]) == {"same": None}


@pytest.mark.parametrize("column", [[1, 2], {"steps": [1, 2]}, {"steps": [1, "2", 3]}, {"other": 1}, "abc", None])
def test_what_is_no_column_of_three_is_refused(column: Any) -> None:
    with pytest.raises(ValueError, match=r"column|steps"):
        unpack_column(column, 3)
