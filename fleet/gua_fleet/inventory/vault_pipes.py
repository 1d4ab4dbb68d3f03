"""Vault passwords that come through a pipe, as in `--vault-password-file <(pass show vault)` or `/dev/stdin`.

A pipe can be read once, and by this process alone: the one that runs Ansible has none of our files open.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from gua_fleet.errors import InventoryError
from gua_fleet.secrets import Secret


def read_pipes(
    files: Iterable[str], ids: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...], Mapping[str, Secret]]:
    """The password files that are no pipes; the vault ids, with those for which Ansible will ask instead; and by the
    names of these what came through the pipes.

    Raises InventoryError for a pipe that holds no password.
    """
    passwords: dict[str, Secret] = {}

    def read(name: str, file: str) -> str:
        own = name if name not in passwords else f"{name}-{len(passwords) + 1}"
        passwords[own] = _read(file)
        return f"{own}@prompt"

    plain: list[str] = []
    named: list[str] = []
    for file in files:
        if _is_pipe(file):
            named.append(read("default", file))
        else:
            plain.append(file)
    for text in ids:
        name, _, file = text.rpartition("@")
        named.append(read(name or "default", file) if _is_pipe(file) else text)
    return tuple(plain), tuple(named), passwords


def _is_pipe(file: str) -> bool:
    try:
        mode = Path(file).expanduser().stat().st_mode
    except OSError:  # Ansible will say what is wrong with it
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or file.startswith(("/dev/stdin", "/dev/fd/"))


def _read(file: str) -> Secret:
    try:
        text = Path(file).expanduser().read_text("utf-8").strip()
    except OSError as exc:
        raise InventoryError(f"the vault password cannot be read from {file}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:  # whose words tell a byte of it
        raise InventoryError(f"the vault password from {file} is not UTF-8") from exc
    if not text:
        raise InventoryError(f"no vault password came from {file}: is what feeds it well?")
    return Secret(text)
