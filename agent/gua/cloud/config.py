"""`cloud.json`: which board this host is enrolled with, and its token. Mode 0600, written whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Optional

from gua.cloud.server_url import check_server_url
from gua.cloud.token import Token
from gua.errors import ConfigError, EnrolmentForbidden, NotEnrolled, UsageError
from gua.host import read_machine_id
from gua.open_file import open_at_once
from gua.text import shown

MODE = 0o600
FILE_NAME = "cloud.json"
_LARGEST_BYTES = 64 * 1024
_FIELDS = ("serverUrl", "hostId", "displayName", "agentToken", "tokenPrefix")


@dataclass(frozen=True)
class CloudConfig:
    """An enrolment. machine_id: the machine it was made on; empty where nobody noted it (a file of older agents)."""

    server_url: str
    host_id: str
    display_name: str
    agent_token: Token
    token_prefix: str
    machine_id: str = ""

    @property
    def shown_prefix(self) -> str:
        """What people may see of the token; less than the board says where it says nearly all."""
        return shown(self.token_prefix[: len(self.agent_token.reveal()) // 2], 20)

    def to_json(self) -> str:
        """The file's text, secret included."""
        fields = {
            "serverUrl": self.server_url,
            "hostId": self.host_id,
            "displayName": self.display_name,
            "agentToken": self.agent_token.reveal(),
            "tokenPrefix": self.token_prefix,
            "machineId": self.machine_id,
        }
        return json.dumps({name: text for name, text in fields.items() if text}, indent=2) + "\n"


def config_path(option: Optional[Path], database: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Where the enrolment is kept: `--config`, then `GUA_CONFIG`, then beside the database."""
    if option is not None:
        return option
    return Path(environ["GUA_CONFIG"]) if environ.get("GUA_CONFIG") else database.with_name(FILE_NAME)


def load_config(
    path: Path, warn: Callable[[str], None], *, repair: bool = True, machine_id: Optional[str] = None
) -> CloudConfig:
    """The enrolment of this host.

    warn: told when others could read the file. repair: then take that right from them. machine_id: this machine's,
    where it is not to be looked up.
    Raises NotEnrolled where there is none, ConfigError when it cannot be used: no right, damaged, of another machine.
    """
    text = _read_private(path, warn, repair=repair)
    config = parse_config(text, path)
    here = read_machine_id() if machine_id is None else machine_id
    if config.machine_id and here and config.machine_id != here:
        raise ConfigError(
            f"{named(path)} was made on another machine and copied here, so that two hosts would be one on the board; "
            "run `gua enroll --force` with a token for this host"
        )
    return config


def parse_config(text: str, path: Path) -> CloudConfig:
    """The enrolment in the file's text. Raises ConfigError, which quotes nothing of it."""
    fields = _fields(text)
    missing = [name for name in _FIELDS if not isinstance(fields.get(name), str) or not fields[name].strip()]
    if missing:
        what = "is empty" if not text.strip() else "is damaged or no enrolment" if not fields else "lacks "
        what += ", ".join(missing) if fields else ""
        raise ConfigError(f"{named(path)} {what}; run `gua enroll --force` with a new one-time token")
    machine_id = fields.get("machineId")
    try:
        return CloudConfig(
            server_url=check_server_url(fields["serverUrl"], allow_http=True),
            host_id=fields["hostId"],
            display_name=fields["displayName"],
            agent_token=Token(fields["agentToken"]),
            token_prefix=fields["tokenPrefix"],
            machine_id=machine_id if isinstance(machine_id, str) else "",
        )
    except UsageError as exc:
        raise ConfigError(f"{named(path)}: serverUrl: {exc}") from exc
    except ValueError:
        pass
    raise ConfigError(f"{named(path)}: agentToken is none; run `gua enroll --force` with a new one-time token")


def _fields(text: str) -> Mapping[str, Any]:
    """The JSON object in the text; empty when there is none. An error of the parser would carry the text along."""
    with contextlib.suppress(ValueError, RecursionError):
        document = json.loads(text)
        if isinstance(document, dict):
            return document
    return {}


def _read_private(path: Path, warn: Callable[[str], None], *, repair: bool) -> str:
    try:
        with open_at_once(path) as file:
            _check_rights(file, path, warn, repair=repair)
            return file.read(_LARGEST_BYTES).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        pass
    except PermissionError as exc:
        raise EnrolmentForbidden(f"{named(path)} is not for this user; it is the daemon's user's alone") from exc
    except OSError as exc:
        raise ConfigError(f"{named(path)} cannot be read: {exc.strerror}") from exc
    raise NotEnrolled(f"this host is not enrolled with a board ({named(path)} is not there); run `gua enroll` first")


def _check_rights(file: IO[bytes], path: Path, warn: Callable[[str], None], *, repair: bool) -> None:
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError(f"{named(path)} is no ordinary file; name another with --config")
    if status.st_uid not in _trusted_uids(path, repair=repair):
        raise ConfigError(f"{named(path)} belongs to uid {status.st_uid}, who could send this host's state elsewhere")
    open_to = status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    if not open_to:
        return
    mode = f"{stat.S_IMODE(status.st_mode):04o}"
    if not repair:
        warn(f"{named(path)} has mode {mode}: others can read this host's token; chmod 0600 it")
        return
    try:
        os.fchmod(file.fileno(), MODE)
    except PermissionError as exc:
        raise ConfigError(
            f"{named(path)} has mode {mode} and is not ours: others can read the token; have its owner chmod 0600 it"
        ) from exc
    warn(f"{named(path)} had mode {mode}, others could read this host's token: now 0600; enrol anew to be safe")


def _trusted_uids(path: Path, *, repair: bool) -> tuple[int, ...]:
    """Whose enrolment is believed: one's own, root's; by root who only looks, also that of whom the folder belongs to.

    That is the daemon's user, whom every command becomes that does more than look.
    """
    ours = (os.geteuid(), 0)
    return ours if repair or os.geteuid() != 0 else (*ours, path.parent.stat().st_uid)


def named(path: Path) -> str:
    """The path as messages have it."""
    return shown(str(path), 200)
