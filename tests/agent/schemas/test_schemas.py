"""The schemas say what the code's types say, and the documents that are made obey them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gua.model import Reason, State, UserSource
from gua.report import document
from gua.schemas import NAMES, load_schema

REPORT = load_schema("gua.report.1")


@pytest.mark.parametrize("name", NAMES)
def test_every_schema_is_a_valid_schema_and_names_its_document(name: str) -> None:
    schema = load_schema(name)
    Draft202012Validator.check_schema(schema)
    assert schema["properties"]["schema"] == {"const": re.sub(r"\.(\d+)$", r"/\1", name)}
    assert '"additionalProperties": false' not in str(schema).replace("'", '"').lower()


@pytest.mark.parametrize(
    ("definition", "shape"),
    [
        ("host", document.HostInfo),
        ("window", document.Window),
        ("rule", document.RuleInfo),
        ("ticks", document.TickCounts),
        ("coverage", document.Coverage),
        ("mig", document.MigInfo),
        ("holder", document.HolderNow),
        ("now", document.Now),
        ("card", document.Card),
        ("user", document.User),
        ("hour_of_week", document.HourOfWeek),
        ("hold", document.Hold),
        ("finding", document.Finding),
        ("states", document.States),
        ("sensitivity", document.Sensitivity),
        ("card_steps", document.CardSteps),
        ("timeline", document.Timeline),
    ],
)
def test_the_report_schema_describes_the_fields_of_the_type(definition: str, shape: Any) -> None:
    """Fields that came later are not required, so that documents of older agents are still read."""
    found = REPORT["$defs"][definition]
    assert set(found["properties"]) == set(shape.__annotations__)
    assert set(found["required"]) == shape.__required_keys__


def test_the_report_schema_describes_the_fields_of_the_report() -> None:
    assert set(REPORT["properties"]) == set(document.Report.__annotations__)
    assert set(REPORT["required"]) == document.Report.__required_keys__
    assert REPORT["properties"]["schema"]["const"] == document.SCHEMA


@pytest.mark.parametrize(("definition", "words"), [("state", State), ("reason", Reason), ("user_source", UserSource)])
def test_the_words_of_the_schema_are_those_of_the_model(definition: str, words: Any) -> None:
    assert REPORT["$defs"][definition]["enum"] == [word.value for word in words]


def test_an_error_document_obeys_its_schema() -> None:
    error = {"schema": "gua.error/1", "code": "database_missing", "message": "no database", "exit_status": 2}
    Draft202012Validator(load_schema("gua.error.1")).validate(error)


def test_unknown_fields_are_accepted_and_another_major_number_is_not() -> None:
    validator = Draft202012Validator(load_schema("gua.error.1"))
    error = {"schema": "gua.error/1", "code": "failed", "message": "", "exit_status": 1}
    assert validator.is_valid({**error, "later": [1]})
    assert not validator.is_valid({**error, "schema": "gua.error/2"})
