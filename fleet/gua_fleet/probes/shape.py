"""Whether a host's document has the shape that its schema promises, so that nothing behind this trips over it. Pure.

The schemas are those of the agent. A field that is not described is welcome, and a word that is not in an `enum` is
a word all the same: a newer agent may say more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from gua.errors import UsageError
from gua.schemas import load_schema
from gua.text import shown
from gua.units import parse_time_ms
from gua_fleet.probes.quick_shape import is_nested_beyond, quick_check

# Deeper than any document of ours by far, and shallow enough for every JSON library to write it again.
MOST_NESTED = 100

# No amount, count or size of ours comes near it, and nothing after this point overflows below it.
_LIMIT = 2**63 - 1


class Misshapen(ValueError):
    """Where the document is not what its schema promises: `users[3].card_s must be number`. One line."""


def check_shape(document: Any, schema: str) -> None:
    """Raise Misshapen unless `document` has the shape of the agent's `schema` (`gua.report/1`)."""
    name = schema.replace("/", ".")
    if _quick(name)(document):
        return
    if is_nested_beyond(document, MOST_NESTED):
        raise Misshapen("the document is nested beyond reason")
    from fastjsonschema import JsonSchemaValueException  # only for saying what is wrong: see quick_shape

    try:
        _validator(name)(document)
    except JsonSchemaValueException as exc:
        at = exc.name or "data"
        place, problem = at.removeprefix("data").lstrip("."), exc.message.removeprefix(at)
        raise Misshapen(shown(f"{place or 'the document'}{problem}", 200)) from None


@lru_cache(maxsize=8)
def _quick(name: str) -> Callable[[Any], bool]:
    return quick_check(_relaxed(load_schema(name)), {"date-time": _is_time})


@lru_cache(maxsize=8)
def _validator(name: str) -> Callable[[Any], Any]:
    import fastjsonschema

    # The library knows drafts up to 7; ours use nothing that means something else there.
    schema = {key: value for key, value in _relaxed(load_schema(name)).items() if key not in ("$schema", "$id")}
    return fastjsonschema.compile(schema, formats={"date-time": _is_time}, use_default=False)


def _relaxed(schema: Any) -> Any:
    """The schema with any word where it lists words, and with bounds on every number."""
    if isinstance(schema, list):
        return [_relaxed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "enum" in schema:
        return {"type": ["string", "null"] if None in schema["enum"] else "string"}
    relaxed = {key: _relaxed(value) for key, value in schema.items()}
    kinds = schema.get("type")
    if kinds in ("number", "integer") or (isinstance(kinds, list) and {"number", "integer"} & set(kinds)):
        # infinity passes for a number, and no bound is in the schema that would stop it
        return {"minimum": -_LIMIT, "maximum": _LIMIT} | relaxed
    return relaxed


@lru_cache(maxsize=1024)  # a document says the same few again and again
def _is_time(text: str) -> bool:
    """Whether it is a time that there is: of the right form is also the 31st of February."""
    try:
        parse_time_ms(text)
    except UsageError:
        return False
    return True
