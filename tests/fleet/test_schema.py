"""The merged document keeps the shape that its schema promises."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gua_fleet.merge import SCHEMA, merge_reports
from gua_fleet.model import Document, Host, HostResult, Outcome
from tests.documents import NOW_MS, SINCE, SINCE_MS, UNTIL_MS, card, report, states
from tests.golden import load


@pytest.fixture(scope="module")
def schema() -> Any:
    text = files("gua_fleet.schemas").joinpath("gua.fleet-report.1.schema.json").read_text(encoding="utf-8")
    return json.loads(text)


def merged(*results: HostResult) -> Document:
    return merge_reports(results, since_ms=SINCE_MS, until_ms=UNTIL_MS, tz="Etc/UTC", generated_at_ms=NOW_MS)


def test_schema_is_a_schema_and_names_the_document(schema: Any) -> None:
    Draft202012Validator.check_schema(schema)
    assert schema["properties"]["schema"]["const"] == SCHEMA


def test_merged_document_of_every_kind_of_host_fits_the_schema(schema: Any) -> None:
    hold = {
        "user": "alice",
        "process": "python",
        "pid": 4242,
        "card": "GPU-a",
        "since": SINCE,
        "until": None,
        "memory_mb": None,
        "states": states(held=60),
        "idle_held_long_card_s": 0.0,
    }
    document = merged(
        HostResult(Host("a", "a", groups=("g",)), Outcome.OK, document=load("agent_report.json") | {"holds": [hold]}),
        HostResult(Host("b", "b", scheduler="slurm"), Outcome.OK, document=load("fleet_second.json")),
        HostResult(Host("a2", "a2"), Outcome.OK, document=load("agent_report.json")),
        HostResult(Host("c", "c", cards=8), Outcome.TIMEOUT, detail="late", stage="exec"),
        HostResult(Host("d", "d"), Outcome.NO_GPU),
    )
    Draft202012Validator(schema).validate(document)
    assert set(document) == set(schema["properties"]), "every field is described"


def test_merged_document_of_nobody_fits_the_schema(schema: Any) -> None:
    Draft202012Validator(schema).validate(merged(HostResult(Host("a", "a"), Outcome.UNREACHABLE)))


def test_schema_refuses_a_state_map_with_a_missing_state(schema: Any) -> None:
    document = merged(HostResult(Host("a", "a"), Outcome.OK, document=report([card("GPU-a", states(1))])))
    del document["card_s"]["truly-idle"]
    assert not Draft202012Validator(schema).is_valid(document)
