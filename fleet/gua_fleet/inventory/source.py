"""Which inventory to read: the option, the environment, gua-fleet.yml, ansible.cfg, or `./inventory.yml`."""

from __future__ import annotations

import configparser
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gua_fleet.config import FILE_NAME
from gua_fleet.errors import InventoryError

_DEFAULT = "inventory.yml"


@dataclass(frozen=True)
class Source:
    """name: the inventory as the user knows it. words: the same with where it was named.

    arguments: what makes Ansible read it; empty where Ansible finds it by itself. folders: those that hold it, as far
    as it is files.
    """

    name: str
    words: str
    arguments: tuple[str, ...]
    folders: tuple[Path, ...] = ()


def find_source(
    given: Sequence[str] = (), environ: Mapping[str, str] = os.environ, configured: Sequence[str] = ()
) -> Source:
    """The inventory to use. given: what `--hosts` named. configured: what gua-fleet.yml names.

    Raises InventoryError when none is named, or a named one is missing or empty.
    """
    source = named_source(given, environ) or (_named(configured, FILE_NAME) if configured else _found(environ))
    if source is None:
        raise InventoryError(
            f"no inventory: give --hosts FILE, set GUA_FLEET_HOSTS, name it in {FILE_NAME}, or write ./{_DEFAULT}"
        )
    return source


def named_source(given: Sequence[str], environ: Mapping[str, str] = os.environ) -> Source | None:
    """The inventory that the option or the environment names; both come before gua-fleet.yml."""
    if given:
        return _named(given, "--hosts")
    if environ.get("GUA_FLEET_HOSTS"):
        return _named((environ["GUA_FLEET_HOSTS"],), "GUA_FLEET_HOSTS")
    return None


def _found(environ: Mapping[str, str]) -> Source | None:
    if environ.get("ANSIBLE_INVENTORY"):
        return Source(environ["ANSIBLE_INVENTORY"], f"{environ['ANSIBLE_INVENTORY']} (ANSIBLE_INVENTORY)", ())
    for config in ansible_configs(environ):
        inventory = _configured_inventory(config)
        if inventory:
            return Source(inventory, f"{inventory} ({config})", ())
        break  # Ansible reads the first configuration file only
    return _named((_DEFAULT,), "the default") if Path(_DEFAULT).exists() else None


def _named(names: Sequence[str], why: str) -> Source:
    arguments: list[str] = []
    folders: list[Path] = []
    for name in names:
        if not name.strip():
            raise InventoryError(f"{why} is empty: name an inventory file")
        if "," in name:  # a list of hosts, as Ansible takes it
            arguments += ["-i", name]
            continue
        path = Path(name).expanduser()
        _check(path, why)
        arguments += ["-i", str(path)]
        folders.append(path.absolute().parent)
    shown = ", ".join(names)
    return Source(shown, f"{shown} ({why})", tuple(arguments), tuple(dict.fromkeys(folders)))


def _check(path: Path, why: str) -> None:
    try:
        if not path.exists():
            raise InventoryError(f"no inventory at {path} ({why}): write one, see inventory.example.yml")
        if path.is_file() and path.stat().st_size == 0:
            raise InventoryError(f"the inventory {path} is empty: write hosts into it, see inventory.example.yml")
    except OSError as exc:
        raise InventoryError(f"the inventory {path} cannot be read ({why}): {exc.strerror}") from exc


def ansible_configs(environ: Mapping[str, str]) -> Iterator[Path]:
    """The files Ansible looks for, in its order. One in a world-writable directory is not trusted, as there."""
    if environ.get("ANSIBLE_CONFIG"):
        named = Path(environ["ANSIBLE_CONFIG"])
        yield named / "ansible.cfg" if named.is_dir() else named
    here = Path("ansible.cfg")
    if not Path.cwd().stat().st_mode & 0o002:
        yield here
    yield Path("~/.ansible.cfg").expanduser()
    yield Path("/etc/ansible/ansible.cfg")


def _configured_inventory(config: Path) -> str | None:
    parser = configparser.ConfigParser(inline_comment_prefixes=(";",), interpolation=None, strict=False)
    try:
        parser.read(config, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as exc:
        raise InventoryError(f"{config} cannot be read: {str(exc).splitlines()[0]}") from exc
    return parser.get("defaults", "inventory", fallback=None)
