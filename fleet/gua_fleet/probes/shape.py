"""Whether a host's document has the shape that its schema promises, so that nothing behind this trips over it. Pure.

Understands the JSON Schema keywords that our own schemas use, and refuses a schema that uses another. A field that is
not described is welcome, and a word that is not in an `enum` is a word all the same: a newer agent may say more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from gua.errors import UsageError
from gua.schemas import load_schema
from gua.text import shown
from gua.units import parse_time_ms

Check = Callable[[Any], None]
"""Given a value, returns or raises Misshapen."""

# Deeper than any document of ours by far, and shallow enough for every JSON library to write it again.
MOST_NESTED = 100

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}
_UNDERSTOOD = frozenset(
    {"type", "required", "properties", "additionalProperties", "items", "minimum", "maximum", "pattern"}
    | {"format", "oneOf", "$ref", "$schema", "$id", "$defs", "title", "description", "enum", "const"}
)
# No amount, count or size of ours comes near it, and nothing after this point overflows below it.
_LIMIT = 2.0**63


class Misshapen(ValueError):
    """Where the document is not what its schema promises: `users[3].card_s is below 0`."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.place = ""

    def within(self, step: str) -> Misshapen:
        """The same one step further out; the place grows only on the way out, so that a sound document pays nothing."""
        self.place = step + self.place
        return self

    def __str__(self) -> str:
        return f"{self.place.lstrip('.') or 'the document'} {self.problem}"


def check_shape(document: Any, schema: str) -> None:
    """Raise Misshapen unless `document` has the shape of the agent's `schema` (`gua.report/1`)."""
    if _is_nested_beyond(document, MOST_NESTED):
        raise Misshapen("is nested beyond reason")
    _compiled(schema.replace("/", "."))(document)


def _is_nested_beyond(document: Any, most: int) -> bool:
    level = [document]
    for _ in range(most):
        level = [child for node in level for child in _children(node) if isinstance(child, (dict, list))]
        if not level:
            return False
    return True


def _children(node: Any) -> Any:
    return node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


@lru_cache(maxsize=8)
def _compiled(name: str) -> Check:
    schema = load_schema(name)
    return _compile(schema, schema.get("$defs", {}))


def _compile(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Check:
    unheard = schema.keys() - _UNDERSTOOD
    if unheard:
        raise NotImplementedError(f"JSON Schema keywords {', '.join(sorted(unheard))}")
    if "$ref" in schema:
        return _compile(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "oneOf" in schema:
        return _one_of([_compile(part, definitions) for part in schema["oneOf"]])
    kind = schema.get("type")
    if kind == "object":
        return _object(schema, definitions)
    if kind == "array":
        return _array(_compile(schema["items"], definitions))
    if kind is None:  # only an enum or a const
        return _plain("string")
    if {"number", "integer"} & set(_listed(kind)):
        return _number(_listed(kind), schema.get("minimum", -_LIMIT), schema.get("maximum", _LIMIT))
    return _time(schema["pattern"]) if schema.get("format") == "date-time" else _plain(kind)


def _listed(kind: str | list[str]) -> list[str]:
    return [kind] if isinstance(kind, str) else kind


def _object(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Check:
    required = frozenset(schema.get("required", ()))
    parts = [(name, _compile(part, definitions)) for name, part in schema.get("properties", {}).items()]
    described = frozenset(name for name, _ in parts)
    others = _compile(schema["additionalProperties"], definitions) if "additionalProperties" in schema else None

    def check(value: Any) -> None:
        if type(value) is not dict:
            raise Misshapen("is no object")
        if not required <= value.keys():
            raise Misshapen(f"lacks {', '.join(sorted(required - value.keys()))}")
        name = ""
        try:
            for name, part in parts:
                if name in value:
                    part(value[name])
            if others is not None:
                for name in value.keys() - described:
                    others(value[name])
        except Misshapen as exc:
            raise exc.within(f".{shown(name)}") from None

    return check


def _array(part: Check) -> Check:
    def check(value: Any) -> None:
        if type(value) is not list:
            raise Misshapen("is no list")
        number = 0
        try:
            for number, item in enumerate(value):  # noqa: B007 - the handler below reads it
                part(item)
        except Misshapen as exc:
            raise exc.within(f"[{number}]") from None

    return check


def _number(kinds: list[str], least: float, most: float) -> Check:
    """NaN fails every comparison and infinity the strict one, so neither passes."""
    types = frozenset(kind for name in kinds for kind in _TYPES[name])

    def check(value: Any) -> None:
        if type(value) not in types:
            raise Misshapen(f"is no {' or '.join(kinds)}")
        if value is not None and not (least <= value <= most and -_LIMIT < value < _LIMIT):
            raise Misshapen("is out of all bounds")

    return check


def _plain(kind: str | list[str]) -> Check:
    types = frozenset(found for name in _listed(kind) for found in _TYPES[name])

    def check(value: Any) -> None:
        if type(value) not in types:
            raise Misshapen(f"is no {' or '.join(_listed(kind))}")

    return check


def _time(pattern: str) -> Check:
    matches = re.compile(pattern).search

    def check(value: Any) -> None:
        if type(value) is not str or not matches(value):
            raise Misshapen("is no time in UTC")
        try:
            parse_time_ms(value)
        except UsageError:  # of the right form, but there is no 31st of February
            raise Misshapen("is no time in UTC") from None

    return check


def _one_of(parts: list[Check]) -> Check:
    """Ours are all `this or null`: the first alternative is the one to complain of."""
    first, *others = parts

    def check(value: Any) -> None:
        try:
            first(value)
        except Misshapen:
            for other in others:
                try:
                    return other(value)
                except Misshapen:
                    continue
            raise

    return check
