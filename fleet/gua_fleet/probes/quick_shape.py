"""A schema turned into nested functions that say yes in a fifth of the time the library takes. Pure.

They only ever shorten the way to yes: what they do not understand is a no, and the library then looks again and finds
the words. So they may be stricter than the schema, never laxer. Documents are what `json.loads` makes.

They say no as well to what is nested deeply where the schema says nothing of it: what it describes cannot be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any], bool]

_NODES = frozenset({dict, list})
# Half of what `gua_fleet.probes.shape` allows a whole document; no schema describes as many levels by far.
_MOST_UNDESCRIBED = 50

# What says nothing about the document.
_REMARKS = frozenset({"description", "title", "$schema", "$id", "$defs"})
_NUMBERS = frozenset({int, float})
_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),  # a whole number written 5.0 is left to the library
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}


def is_nested_beyond(document: Any, most: int) -> bool:
    """Whether there are more than `most` lists and objects within each other."""
    level = [document] if type(document) in _NODES else []
    for _ in range(most):
        level = [
            child
            for node in level
            for child in (node.values() if type(node) is dict else node)
            if type(child) in _NODES
        ]
        if not level:
            return False
    return True


def quick_check(schema: Mapping[str, Any], formats: Mapping[str, Callable[[str], bool]]) -> Check:
    """A function that is True only for documents of `schema`. It knows the keywords that our schemas use.

    formats: name of a `format` -> whether a text has it.
    """
    return _Compiler(schema, formats).check(schema)


class _Compiler:
    def __init__(self, root: Mapping[str, Any], formats: Mapping[str, Callable[[str], bool]]) -> None:
        self._root = root
        self._formats = formats
        self._known: dict[str, Check] = {}

    def check(self, schema: Mapping[str, Any]) -> Check:
        keywords = set(schema) - _REMARKS
        if keywords == {"$ref"}:
            return self._referred(schema["$ref"])
        if keywords == {"const"}:
            wanted = schema["const"]
            return lambda value: type(value) is type(wanted) and bool(value == wanted)
        if keywords == {"oneOf"}:
            parts = [self.check(part) for part in schema["oneOf"]]
            return lambda value: sum(part(value) for part in parts) == 1
        if keywords == {"anyOf"}:
            ways = [self.check(part) for part in schema["anyOf"]]
            return lambda value: any(way(value) for way in ways)
        if "type" in keywords:
            return self._typed(schema, keywords - {"type"})
        return _no if keywords else _is_shallow

    def _referred(self, place: str) -> Check:
        if place not in self._known:
            name = place.removeprefix("#/$defs/")
            self._known[place] = _no  # a schema that holds itself is left to the library
            self._known[place] = self.check(self._root["$defs"][name])
        return self._known[place]

    def _typed(self, schema: Mapping[str, Any], keywords: set[str]) -> Check:
        names = [schema["type"]] if isinstance(schema["type"], str) else list(schema["type"])
        nullable = "null" in names and len(names) > 1
        kinds = frozenset(kind for name in names for kind in _TYPES[name])
        check = self._of_kind(schema, keywords, kinds - {type(None)} if nullable else kinds)
        return (lambda value: value is None or check(value)) if nullable else check

    def _of_kind(self, schema: Mapping[str, Any], keywords: set[str], kinds: frozenset[type]) -> Check:
        if not keywords:
            if kinds & _NODES:
                return lambda value: type(value) in kinds and _is_shallow(value)
            return lambda value: type(value) in kinds
        if kinds <= {int, float} and keywords <= {"minimum", "maximum"}:
            low, high = _bounds(schema)
            return lambda value: type(value) in kinds and low <= value <= high
        if keywords <= {"minimum", "maximum"}:  # which speak of numbers only
            low, high, others = *_bounds(schema), kinds - _NUMBERS
            return lambda value: type(value) in others or (type(value) in kinds and low <= value <= high)
        if kinds == {str} and keywords <= {"pattern", "format"}:
            return self._text(schema.get("pattern", ""), self._formats.get(schema.get("format", ""), _yes))
        if kinds == {list} and keywords == {"items"}:
            item = self.check(schema["items"])
            return lambda value: type(value) is list and all(map(item, value))
        if kinds == {dict} and keywords <= {"properties", "required", "additionalProperties"}:
            return self._object(schema)
        return _no

    def _text(self, pattern: str, has_format: Callable[[str], bool]) -> Check:
        search = re.compile(pattern).search
        return lambda value: type(value) is str and search(value) is not None and has_format(value)

    def _object(self, schema: Mapping[str, Any]) -> Check:
        written = schema.get("properties", {})
        properties = {name: self.check(part) for name, part in written.items()}
        # nearly all of a report is amounts, so these are looked at without a call for each
        amounts = [
            (name, frozenset(_TYPES[written[name]["type"]]), *_bounds(written[name]))
            for name in schema.get("required", ())
            if _is_amount(written.get(name))
        ]
        plain = {name for name, *_ in amounts}
        required = [
            (name, properties.get(name, _is_shallow)) for name in schema.get("required", ()) if name not in plain
        ]
        optional = [(name, check) for name, check in properties.items() if name not in schema.get("required", ())]
        described = properties.keys() | set(schema.get("required", ()))
        more = schema.get("additionalProperties", True)
        other = _is_shallow if more is True else _no if more is False else self.check(more)

        def check(value: Any) -> bool:
            if type(value) is not dict:
                return False
            for name, kinds, low, high in amounts:
                amount: Any = value.get(name)
                if type(amount) not in kinds or not low <= amount <= high:
                    return False
            left = len(value) - len(amounts) - len(required)
            for name, part in required:
                if name not in value or not part(value[name]):
                    return False
            for name, part in optional:
                if name in value:
                    left -= 1
                    if not part(value[name]):
                        return False
            return not left or all(other(value[name]) for name in value.keys() - described)

        return check


def _is_amount(schema: Any) -> bool:
    return (
        bool(schema)
        and schema.get("type") in ("number", "integer")
        and set(schema) - _REMARKS <= {"type", "minimum", "maximum"}
    )


def _bounds(schema: Mapping[str, Any]) -> tuple[float, float]:
    return schema.get("minimum", float("-inf")), schema.get("maximum", float("inf"))


def _yes(value: Any) -> bool:
    return True


def _is_shallow(value: Any) -> bool:
    return type(value) not in _NODES or not is_nested_beyond(value, _MOST_UNDESCRIBED)


def _no(value: Any) -> bool:
    return False
