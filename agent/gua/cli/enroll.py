"""`gua enroll`: swap a one-time token for this host's own, and keep that."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from gua.cli.common import add_cloud_option, add_store_options, locate_database, open_settings, tell
from gua.errors import AlreadyEnrolled, BoardFailed, ExitStatus, GuaError, NotEnrolled, UsageError
from gua.text import shown

if TYPE_CHECKING:
    from gua.cloud.config import CloudConfig
    from gua.cloud.config_file import ConfigWriter
    from gua.cloud.token import Token

# Longer than any token; what is piped in by mistake must not be read without end.
_LONGEST_TOKEN_FILE = 8192


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--server-url", metavar="URL", help="the board, such as https://board.example.org")
    token = parser.add_mutually_exclusive_group()
    token.add_argument(
        "--enrollment-token-file", metavar="FILE", help="file with the one-time token, - for stdin (default: asked)"
    )
    token.add_argument("--enrollment-token", metavar="TOKEN", help="the token itself; everybody on this host sees it")
    parser.add_argument("--hostname", metavar="NAME", help="what the board is told as this host's name")
    parser.add_argument("--force", action="store_true", help="replace an enrolment that is there")
    parser.add_argument("--check", action="store_true", help="change nothing; say whether the board takes this host")
    parser.add_argument("--allow-http", action="store_true", help="send the token unencrypted over a network")
    add_cloud_option(parser)
    add_store_options(parser)


def run(options: argparse.Namespace) -> int:
    """Enrol, or check. Exit status 1 when the board refuses or cannot be reached, 2 when enrolled already."""
    from gua.clock import SystemClock
    from gua.cloud.config import config_path
    from gua.cloud.config_file import open_config_writer, refuse_other_file
    from gua.cloud.heard import begin_heard
    from gua.cloud.server_url import check_server_url
    from gua.privileges import become_owner, owner_of

    database = locate_database(options, open_settings(options)).path
    path = config_path(options.config, database)
    url = None if options.server_url is None else check_server_url(options.server_url, allow_http=options.allow_http)
    if options.check:
        return _check(path, url)
    if url is None:
        raise UsageError("which board? name it with --server-url, such as https://board.example.org")
    given = _given_token(options)  # as who started this: the owner of the database may not be let at the file
    owner = None
    if become_owner(path) is None:
        owner = owner_of(database)  # the daemon's user, when root keeps the file where only root may write
    refuse_other_file(path)
    _refuse_second(path, force=options.force)
    token = _to_token(_ask_token() if given is None else given)
    with open_config_writer(path, owner) as writer:
        _refuse_second(path, force=options.force)  # somebody else may have been quicker
        replaces = path.exists()
        config = _enroll(writer, path, url, token, _facts(options.hostname))
    begin_heard(database, config, SystemClock().now_ms(), owner_of(database))
    sys.stdout.write(
        f"enrolled with {config.server_url} as {shown(config.display_name)} ({shown(config.host_id)}), "
        f"token {config.shown_prefix}..., kept in {shown(str(path), 200)}\n"
    )
    if replaces:
        tell("a daemon with --cloud goes over to it when it is reloaded, or when the board refuses the old token")
    return int(ExitStatus.OK)


def _enroll(
    writer: ConfigWriter, path: Path, url: str, token: Token, facts: Mapping[str, Optional[str]]
) -> CloudConfig:
    """Claim and keep. The file is made already, so that as little as possible can fail once the token is used."""
    from gua.cloud.client import BoardClient

    try:
        claimed = BoardClient(url).claim(token, facts)
    except BoardFailed as exc:
        if exc.answered:
            raise
        # Its request may have got there: who tries again and is refused shall know why
        raise BoardFailed(f"{exc}. Try again; if the token is refused then, it was used up: ask for another") from exc
    config = _to_config(claimed, url)
    try:
        writer.save(config)
    except OSError as exc:
        raise GuaError(
            f"the board took this host, but {shown(str(path), 200)} cannot be written: {exc.strerror}. "
            "The one-time token is used up now: make room there, and ask for another one"
        ) from exc
    return config


def _to_config(claimed: Mapping[str, Any], url: str) -> CloudConfig:
    """Raises BoardFailed for an answer that is no claim; then the one-time token may be used up."""
    from gua.cloud.config import CloudConfig
    from gua.cloud.token import Token
    from gua.host import read_machine_id

    names = ("hostId", "displayName", "agentToken", "tokenPrefix")
    missing = [name for name in names if not isinstance(claimed.get(name), str) or not claimed[name].strip()]
    if not missing:
        try:
            token = Token(claimed["agentToken"])
        except ValueError:
            missing = ["a usable agentToken"]
        else:
            return CloudConfig(
                server_url=url,
                host_id=claimed["hostId"],
                display_name=claimed["displayName"],
                agent_token=token,
                token_prefix=claimed["tokenPrefix"],
                machine_id=read_machine_id(),
            )
    raise BoardFailed(
        f"{url} answered without {', '.join(missing)}. The one-time token may be used up now: ask for another one"
    )


def _check(path: Path, url: Optional[str]) -> int:
    """Whether the board answers, and takes this host's token; of a board named by URL only whether it answers."""
    from gua.cloud.client import BoardClient
    from gua.cloud.config import load_config
    from gua.privileges import become_owner

    become_owner(path)
    if url is not None:
        BoardClient(url).probe(None)
        sys.stdout.write(f"{url} answers like a board; this host was not made known to it\n")
        return int(ExitStatus.OK)
    config = load_config(path, tell, repair=False)
    BoardClient(config.server_url).probe(config.agent_token)
    sys.stdout.write(
        f"enrolled with {config.server_url} as {shown(config.display_name)} ({shown(config.host_id)}); "
        "the board answers and does not refuse the token\n"
    )
    return int(ExitStatus.OK)


def _refuse_second(path: Path, *, force: bool) -> None:
    """Raises AlreadyEnrolled where something is there, damaged or not, unless it may be replaced."""
    from gua.cloud.config import load_config

    if force:
        return
    try:
        config = load_config(path, lambda line: None, repair=False)
    except NotEnrolled:
        return
    except GuaError as exc:
        raise AlreadyEnrolled(f"there is an enrolment already: {exc}") from exc
    raise AlreadyEnrolled(
        f"this host is enrolled with {config.server_url} as {shown(config.display_name)} already; "
        "to enrol it anew, add --force"
    )


def _to_token(text: str) -> Token:
    """The one-time token. Raises UsageError where there is none; its text never quotes what was read."""
    from gua.cloud.token import Token

    if not text.strip():
        raise UsageError("the enrolment token is empty; copy it from the board")
    try:
        return Token(text.strip())
    except ValueError:
        pass
    raise UsageError("that is no enrolment token: it is one word, and nothing else may be in the file")


def _given_token(options: argparse.Namespace) -> Optional[str]:
    """The token's text from where the command line says; None: nobody said. Raises UsageError."""
    if options.enrollment_token is not None:
        tell("--enrollment-token shows in `ps` and in the shell's history; --enrollment-token-file does not")
        return str(options.enrollment_token)
    if options.enrollment_token_file == "-":
        return sys.stdin.read(_LONGEST_TOKEN_FILE)
    if options.enrollment_token_file is None:
        return None
    path = Path(options.enrollment_token_file)
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_LONGEST_TOKEN_FILE)
    except OSError as exc:
        raise UsageError(f"{shown(str(path), 200)}: cannot be read: {exc.strerror}") from exc


def _ask_token() -> str:
    """What is typed, unseen. Raises UsageError where nobody can type."""
    if not sys.stdin.isatty():
        raise UsageError("no enrolment token: name a file with --enrollment-token-file, or - for stdin")
    import getpass

    try:
        return getpass.getpass("Enrolment token: ", sys.stderr)
    except EOFError:
        return ""


def _facts(name: Optional[str]) -> Mapping[str, Optional[str]]:
    """What the board is told of this host; None where it is not known."""
    from gua import __version__
    from gua.driver_files import read_module_version
    from gua.host import hostname, procfs_root

    return {
        "hostname": name or hostname(),
        "agentVersion": __version__,
        "driverVersion": read_module_version(procfs_root()),
    }
