"""No document, however odd, gets past the probe and then trips the merge, the tables or the JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from functools import reduce
from operator import getitem
from typing import Any

import pytest

from gua.frames import wrap_document
from gua.schemas import NAMES
from gua.units import parse_time_ms
from gua_fleet.anonymous import without_names
from gua_fleet.merge import merge_reports
from gua_fleet.model import Host, HostResult, Outcome
from gua_fleet.probes import shape
from gua_fleet.probes.answer import Answer
from gua_fleet.probes.doctor import DOCTOR_PROBE
from gua_fleet.probes.probe import Probe, Reading
from gua_fleet.probes.report import report_probe
from gua_fleet.probes.shape import Misshapen, check_shape
from gua_fleet.probes.sync_once import SYNC_ONCE_PROBE
from gua_fleet.render_csv import render_csv
from gua_fleet.render_html import render_html
from gua_fleet.render_json import render_json
from gua_fleet.render_table import render_fleet
from tests.documents import NOW, card, report, states, user
from tests.golden import load

NONCE = "0123456789abcdef" * 2
GOLDEN = load("agent_report.json")
OTHER = GOLDEN | {"host": GOLDEN["host"] | {"store_id": "another"}}  # else the two would be one agent, counted once
SINCE_MS, UNTIL_MS = (parse_time_ms(GOLDEN["window"][end]) for end in ("since", "until"))
PROBE = report_probe(since_ms=SINCE_MS, until_ms=UNTIL_MS, tz=GOLDEN["tz"])
CHECK = {"id": "os", "status": "ok", "summary": "Linux", "cure": None, "details": {}}
DOCTOR = {"schema": "gua.doctor/1", "generated_at": NOW, "ready": True, "checks": [CHECK]}

ODD: list[Any] = [
    *(None, True, "", "5", "\x1b[2J<b>", "\ud800", "2026-02-31T00:00:00Z", [], {}, [None], {"a": None}),
    *(-1, -0.5, 10**300, 1e300, 10**4000, float("nan"), float("inf"), "x" * 5000),
]
MISSING = object()


def read(document: Any, probe: Probe = PROBE) -> Reading:
    return probe.interpret(Host("h", "h"), Answer(0, wrap_document(json.dumps(document), NONCE).encode(), b""), NONCE)


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document, the first item of each list only."""
    if path:
        yield path
    children = node.items() if isinstance(node, dict) else enumerate(node[:1]) if isinstance(node, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def altered(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = deepcopy(document)
    node = changed
    for key in path[:-1]:
        node = node[key]
    if value is MISSING:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return changed


def show_beside_a_sound_host(document: Any) -> None:
    results = [
        HostResult(Host("odd", "odd"), Outcome.OK, document=document),
        HostResult(Host("sound", "sound"), Outcome.OK, document=OTHER),
    ]
    merged = merge_reports(results, since_ms=SINCE_MS, until_ms=UNTIL_MS, tz=GOLDEN["tz"], generated_at_ms=UNTIL_MS)
    json.loads(render_json(merged), parse_constant=pytest.fail)
    assert "\x1b" not in render_fleet(merged)
    assert "\x1b" not in render_html(merged)
    render_csv(without_names(merged))


@pytest.mark.parametrize("path", list(places(GOLDEN)), ids=lambda path: ".".join(map(str, path)))
def test_report_with_one_odd_place_is_refused_or_can_be_shown(path: tuple[Any, ...]) -> None:
    for value in [*ODD, MISSING]:
        reading = read(altered(GOLDEN, path, value))
        if reading.outcome is Outcome.OK:
            show_beside_a_sound_host(reading.document)
        else:
            assert reading.outcome is Outcome.BAD_OUTPUT
            assert len((reading.detail or "").splitlines()) == 1


@pytest.mark.parametrize("name", NAMES)
def test_every_schema_of_the_agent_is_understood(name: str) -> None:
    with pytest.raises(Misshapen, match="the document must be object"):
        check_shape([], name.replace(".1", "/1"))


@pytest.mark.parametrize("path", list(places(GOLDEN)), ids=lambda path: ".".join(map(str, path)))
def test_quick_check_never_says_yes_where_the_library_says_no(path: tuple[Any, ...]) -> None:
    for value in [*ODD, MISSING]:
        document = altered(GOLDEN, path, value)
        if shape._quick("gua.report.1")(document):
            shape._validator("gua.report.1")(document)  # raises


@pytest.mark.parametrize("name", NAMES)
def test_quick_check_understands_every_keyword_of_our_schemas(name: str) -> None:
    """Else every document would take the long way, and nobody would see why."""
    assert "_no" not in _functions_in(shape._quick(name))


def _functions_in(check: Any, seen: frozenset[int] = frozenset()) -> set[str]:
    if id(check) in seen or not callable(check) or not getattr(check, "__closure__", None):
        return {getattr(check, "__name__", "")}
    found = {check.__name__}
    for cell in check.__closure__:
        content = cell.cell_contents
        parts = content if isinstance(content, list) else content.values() if isinstance(content, dict) else [content]
        for part in parts:
            inner = part[1] if isinstance(part, tuple) else part
            found |= _functions_in(inner, seen | {id(check)})
    return found


def test_quick_check_says_yes_to_what_agents_say() -> None:
    assert shape._quick("gua.report.1")(GOLDEN)
    assert shape._quick("gua.doctor.1")(DOCTOR)


def test_shape_names_the_place() -> None:
    document = report([card("GPU-a", states(1))], [user("alice", states(1)), user("bob", states(1))])
    document["users"][1]["card_s"] = "many"
    with pytest.raises(Misshapen) as caught:
        check_shape(document, "gua.report/1")
    assert str(caught.value) == "users[1].card_s must be number"


def test_document_with_fields_and_words_of_a_newer_agent_is_read_all_the_same() -> None:
    newer = deepcopy(GOLDEN) | {"power": {"watts": 3}}
    newer["cards"][0]["now"]["state"] = "asleep"
    assert read(newer) == Reading(Outcome.OK, None, newer)
    show_beside_a_sound_host(newer)


OBJECTS = [path for path in places(GOLDEN) if isinstance(reduce(getitem, path, GOLDEN), dict)]


@pytest.mark.parametrize("path", OBJECTS, ids=lambda path: ".".join(map(str, path)))
def test_field_of_a_newer_agent_in_any_object_costs_nothing(path: tuple[Any, ...]) -> None:
    for value in (None, "word", [1], {"more": 1}, 5):
        reading = read(altered(GOLDEN, (*path, "unheard_of"), value))
        if path == ("coverage", "unknown_by_reason") and value != 5:  # its keys are words, not fields
            assert reading.outcome is Outcome.BAD_OUTPUT
            continue
        assert (reading.outcome, reading.detail) == (Outcome.OK, None)
        show_beside_a_sound_host(reading.document)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("coverage", "expected_card_s"), 1e12, "expects more card time than its cards have"),
        (("card_s", "active"), 1e9, "states are not what it observed"),
        (("users", 0, "card_s"), 1e9, "a user has more card time"),
        (("users", 0, "share_s"), 1e9, "a user's share"),
        (("cards", 0, "card_s", "active"), 1e9, "the cards do not make up the host"),
        (("cards", 0, "uuid"), GOLDEN["cards"][1]["uuid"], "a card is in it twice"),
        (("cards", 0, "held_unmeasured_s"), 1e6, "more held time was not measured than is unknown"),
        (("window", "since"), "1999-01-01T00:00:00Z", "which was not asked"),
        (("window", "until"), "2999-01-01T00:00:00Z", "which was not asked"),
    ],
)
def test_report_that_cannot_be_true_is_refused(path: tuple[Any, ...], value: Any, words: str) -> None:
    reading = read(altered(GOLDEN, path, value))
    assert reading.outcome is Outcome.BAD_OUTPUT
    assert words in (reading.detail or "")
    assert reading.document is None


def test_users_folded_together_may_have_more_card_time_than_there_was() -> None:
    many = altered(GOLDEN, ("users", 0, "user"), "(expired)")
    assert read(altered(many, ("users", 0, "card_s"), 1e9)).outcome is Outcome.OK


@pytest.mark.parametrize("path", [(), ("host",), ("cards", 0), ("users", 0), ("hours_of_week", 0, "card_s")])
@pytest.mark.parametrize(("levels", "outcome"), [(45, Outcome.OK), (90, Outcome.OK), (101, Outcome.BAD_OUTPUT)])
def test_what_no_schema_describes_may_be_nested_as_far_as_the_rest(
    path: tuple[Any, ...], levels: int, outcome: Outcome
) -> None:
    deep: Any = 0
    for _ in range(levels - len(path)):
        deep = [deep]
    document = altered(GOLDEN, (*path, "unheard"), deep)
    # the document is a level itself
    assert read(document).outcome is outcome
    assert shape._quick("gua.report.1")(document) is (levels < 50)


@pytest.mark.parametrize("probe", [DOCTOR_PROBE, SYNC_ONCE_PROBE, PROBE])
def test_document_nested_beyond_reason_is_refused(probe: Probe) -> None:
    deep: Any = 0
    for _ in range(400):
        deep = [deep]
    reading = read(DOCTOR | {"schema": probe.schema, "checks": [CHECK | {"details": {"deep": deep}}]}, probe)
    assert reading.outcome is Outcome.BAD_OUTPUT
    assert "nested beyond reason" in (reading.detail or "")


def test_not_a_number_anywhere_is_no_json() -> None:
    reading = read(DOCTOR | {"unheard": float("nan")}, DOCTOR_PROBE)
    assert reading == Reading(Outcome.BAD_OUTPUT, "the agent's document is not JSON")
