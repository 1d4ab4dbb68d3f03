"""YAML with the line of everything in it, so that a mistake can be named where it was made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gua.errors import ConfigError
from gua_fleet.show import one_line


@dataclass(frozen=True)
class Place:
    """Where something is written. key: `excuses[1].until`, empty for the file as a whole."""

    file: Path
    line: int
    key: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f": {self.key}" if self.key else "")

    def error(self, problem: str) -> ConfigError:
        """The error to raise about it; the problem says the cure, too."""
        return ConfigError(f"{self}: {one_line(problem, width=300)}")


@dataclass(frozen=True)
class Node:
    """A part of the file. value: dict[str, Node], list[Node], or a plain value. text: a plain value as written."""

    value: Any
    text: str
    place: Place

    def entries(self, known: Iterable[str] | None, what: str) -> dict[str, Node]:
        """The node as a mapping. Raises ConfigError when it is none, or has a key that is not `known` (None: any)."""
        if self.value is None:
            return {}
        if not isinstance(self.value, dict):
            raise self.place.error(f"must be {what}, written as `name: value` lines")
        names = None if known is None else tuple(known)
        for name, node in self.value.items():
            if names is not None and name not in names:
                raise node.place.error(f"no such key; known here: {', '.join(names)}")
        return self.value

    def items(self, what: str) -> list[Node]:
        """The node as a list. Raises ConfigError when it is none."""
        if self.value is None:
            return []
        if not isinstance(self.value, list):
            raise self.place.error(f"must be a list of {what}, each on a line that begins with `- `")
        return self.value

    def plain(self) -> Any:
        """The same without places."""
        if isinstance(self.value, dict):
            return {name: node.plain() for name, node in self.value.items()}
        return [node.plain() for node in self.value] if isinstance(self.value, list) else self.value


class _Loader(yaml.SafeLoader):
    """Dates stay text: the time zone they are meant in is known elsewhere."""


_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_yaml(file: Path) -> Node:
    """What the file holds; an empty one holds nothing. Raises ConfigError naming file and line."""
    try:
        loader = _Loader(file.read_text(encoding="utf-8"))
        root = loader.get_single_node()
        return _node(root, Place(file, 1), loader) if root is not None else Node(None, "", Place(file, 1))
    except OSError as exc:
        raise ConfigError(f"{file}: cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{file}: is not UTF-8 text; save it as UTF-8") from exc
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        raise Place(file, mark.line + 1 if mark else 1).error(f"not YAML: {exc.problem or exc.context}") from exc
    except yaml.YAMLError as exc:
        raise ConfigError(f"{file}: not YAML: {one_line(str(exc))}") from exc


def _node(node: yaml.Node, place: Place, loader: yaml.SafeLoader) -> Node:
    if isinstance(node, yaml.MappingNode):
        return Node(_mapping(node, place, loader), "", place)
    if isinstance(node, yaml.SequenceNode):
        parts = [
            _node(part, Place(place.file, part.start_mark.line + 1, f"{place.key}[{number}]"), loader)
            for number, part in enumerate(node.value)
        ]
        return Node(parts, "", place)
    return Node(loader.construct_object(node), str(node.value), place)


def _mapping(node: yaml.MappingNode, place: Place, loader: yaml.SafeLoader) -> dict[str, Node]:
    entries: dict[str, Node] = {}
    for key, value in node.value:
        name = str(key.value)
        here = Place(place.file, key.start_mark.line + 1, f"{place.key}.{name}" if place.key else name)
        if name in entries:
            raise here.error(f"is there twice, first in line {entries[name].place.line}; keep one")
        entries[name] = _node(value, here, loader)
    return entries
