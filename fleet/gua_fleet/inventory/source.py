"""Which inventory to read: the option, the environment, ansible.cfg, or `./inventory.yml`; the one taken is said."""

from __future__ import annotations

import configparser
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gua_fleet.errors import InventoryError

_DEFAULT = "inventory.yml"


@dataclass(frozen=True)
class Source:
    """name: the inventory as the user knows it. words: the same with where it was named.

    arguments: what makes Ansible read it; empty where Ansible finds it by itself.
    """

    name: str
    words: str
    arguments: tuple[str, ...]


def find_source(given: str | None, environ: Mapping[str, str] = os.environ) -> Source:
    """The inventory to use. Raises InventoryError when none is named, or the named one is missing or empty."""
    if given is not None:
        return _named(given, "--hosts")
    if environ.get("GUA_FLEET_HOSTS"):
        return _named(environ["GUA_FLEET_HOSTS"], "GUA_FLEET_HOSTS")
    if environ.get("ANSIBLE_INVENTORY"):
        return Source(environ["ANSIBLE_INVENTORY"], f"{environ['ANSIBLE_INVENTORY']} (ANSIBLE_INVENTORY)", ())
    for config in _ansible_configs(environ):
        inventory = _configured_inventory(config)
        if inventory:
            return Source(inventory, f"{inventory} ({config})", ())
        break  # Ansible reads the first configuration file only
    if Path(_DEFAULT).exists():
        return _named(_DEFAULT, "the default")
    raise InventoryError(f"no inventory: give --hosts FILE, set GUA_FLEET_HOSTS, or write ./{_DEFAULT}")


def _named(name: str, why: str) -> Source:
    if not name.strip():
        raise InventoryError(f"{why} is empty: name an inventory file")
    path = Path(name).expanduser()
    if "," not in name:
        if not path.exists():
            raise InventoryError(f"no inventory at {path} ({why}): write one, see inventory.example.yml")
        if path.is_file() and path.stat().st_size == 0:
            raise InventoryError(f"the inventory {path} is empty: write hosts into it, see inventory.example.yml")
    return Source(name, f"{name} ({why})", ("-i", name if "," in name else str(path)))


def _ansible_configs(environ: Mapping[str, str]) -> Iterator[Path]:
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
