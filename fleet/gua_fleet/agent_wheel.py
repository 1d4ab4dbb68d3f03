"""The agent's own wheel, as this controller has it: built from a checkout, or packed again from an installation."""

from __future__ import annotations

import base64
import csv
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath

from gua.errors import GuaError
from gua_fleet.python import module_command

# What decides a wheel's content; a change in anything else of a checkout needs no new wheel.
_SOURCES = ("pyproject.toml", "README.md", "LICENSE", "agent", "fleet", "ansible")
# pip's notes about one installation, no part of the distribution.
_INSTALLER_NOTES = {"INSTALLER", "REQUESTED", "RECORD", "direct_url.json", "uv_cache.json", "uv_build.json"}
# The same wheel must come out byte for byte each time; zip files cannot hold an earlier date.
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)
BUILD_TIMEOUT_S = 600


class AgentWheelUnavailable(GuaError):
    """No agent wheel can be made here; the message says what to do."""


@dataclass(frozen=True)
class _RecordedFile:
    """One line of RECORD. sha256: in base64 without padding, None where it has none. place: where the file lies."""

    path: PurePosixPath
    place: Path
    sha256: str | None


def find_checkout(module: Path = Path(__file__)) -> Path | None:
    """The checkout this code runs from (also through an editable install), or None for an ordinary installation."""
    root = module.resolve().parents[2]
    return root if (root / "pyproject.toml").is_file() and (root / "agent" / "gua").is_dir() else None


def make_agent_wheel(checkout: Path | None, directory: Path) -> Path:
    """The wheel, kept in `directory` (made when missing) and made anew only when its content would differ.

    Raises AgentWheelUnavailable.
    """
    if checkout is None:
        return repack(_installed(), directory / "installed")
    kept = directory / source_digest(checkout)[:16]
    if not list(kept.glob("*.whl")):
        _build(checkout, kept)
    return next(kept.glob("*.whl"))


def source_digest(checkout: Path) -> str:
    """SHA-256 over names and contents of everything that goes into the wheel."""
    digest = hashlib.sha256()
    for path in _source_files(checkout):
        digest.update(f"{path.relative_to(checkout)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _source_files(checkout: Path) -> Iterator[Path]:
    for name in _SOURCES:
        path = checkout / name
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (file for file in found if file.is_file() and "__pycache__" not in file.parts)


def _build(checkout: Path, directory: Path) -> None:
    """Build beside `directory` and put it in place in one step, so that half a wheel is never kept."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(directory, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        fresh = Path(scratch) / "wheel"
        run_pip("wheel", "--no-deps", "--wheel-dir", str(fresh), str(checkout), failed=AgentWheelUnavailable)
        fresh.rename(directory)


def run_pip(*arguments: str, failed: type[GuaError]) -> None:
    """Run pip of this interpreter quietly; what it cannot do is raised as `failed`, in its own last words."""
    command = module_command("pip", "--disable-pip-version-check", "--quiet", "--no-input", *arguments)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as exc:
        raise failed(f"pip {arguments[0]} did not end within {BUILD_TIMEOUT_S} s: is the package index there?") from exc
    if done.returncode != 0:
        words = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in words if line.startswith("ERROR")] or words or ["it said nothing"]
        raise failed(f"pip {arguments[0]} failed under {sys.executable}: {errors[-1].strip()}")


def _installed() -> Distribution:
    """The gua-fleet that this module belongs to, not any other on the path."""
    home = str(Path(__file__).resolve().parents[1])
    found = next(iter(distributions(name="gua-fleet", path=[home])), None)
    if found is None:
        raise AgentWheelUnavailable(f"gua-fleet in {home} was not installed by a package manager: install it with pip")
    return found


def repack(installed: Distribution, directory: Path) -> Path:
    """The wheel that `installed` was installed from, made of its files, each checked against its RECORD.

    Raises AgentWheelUnavailable when a file is missing or was changed since.
    """
    recorded = _read_record(installed)
    wheel = directory / f"gua_fleet-{installed.version}-py3-none-any.whl"
    record = next((file.path.as_posix() for file in recorded if file.path.name == "RECORD"), None)
    if record is None:
        raise AgentWheelUnavailable("the installed gua-fleet has no RECORD: reinstall it with pip")
    files = sorted((file for file in recorded if _belongs(file.path)), key=lambda file: file.path)
    contents = {file.path.as_posix(): _checked_bytes(file) for file in files}
    contents[record] = _record(contents, record)
    directory.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(zipfile.ZipInfo(name, _ZIP_EPOCH), content, zipfile.ZIP_DEFLATED)
    return wheel


def _read_record(installed: Distribution) -> list[_RecordedFile]:
    """Every line of RECORD. Not `installed.files`: from Python 3.12 on that leaves out files that are gone."""
    rows = csv.reader((installed.read_text("RECORD") or "").splitlines())
    return [
        _RecordedFile(PurePosixPath(name), Path(str(installed.locate_file(name))), digest.partition("=")[2] or None)
        for name, digest, _ in rows
    ]


def _belongs(path: PurePosixPath) -> bool:
    """Whether a recorded file came out of the wheel: no scripts (they are made anew), no byte code, no notes."""
    notes = path.parent.suffix == ".dist-info" and path.name in _INSTALLER_NOTES
    return ".." not in path.parts and path.suffix != ".pyc" and not notes


def _checked_bytes(file: _RecordedFile) -> bytes:
    try:
        content = file.place.read_bytes()
    except OSError as exc:
        raise AgentWheelUnavailable(f"cannot read {exc.filename} of gua-fleet: reinstall it with pip") from exc
    if file.sha256 is not None and _urlsafe_sha256(content) != file.sha256:
        raise AgentWheelUnavailable(f"{file.place} was changed since gua-fleet was installed: reinstall it with pip")
    return content


def _record(contents: dict[str, bytes], own_name: str) -> bytes:
    rows: Iterable[str] = (f"{name},sha256={_urlsafe_sha256(data)},{len(data)}" for name, data in contents.items())
    return "\n".join([*rows, f"{own_name},,", ""]).encode()


def _urlsafe_sha256(content: bytes) -> str:
    """As RECORD files write it: base64 without padding."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
