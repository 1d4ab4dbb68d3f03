"""Builds the stub `libnvidia-ml.so.1` with gcc, against `nvml.h` of the PyPI package nvidia-nvml-dev."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_SOURCES = tuple(_HERE / name for name in ("nvml_stub.c", "activity.c", "dispatch.c", "scene.c"))
_HEADERS = tuple(_HERE / name for name in ("dispatch.h", "scene.h"))
_SONAME = "libnvidia-ml.so.1"
# nvml.h marks what newer drivers replace as deprecated; old functions are what a stub must have.
_FLAGS = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations", "-shared", "-fPIC")


class StubUnavailable(Exception):
    """This machine cannot build the stub; the message is the reason to show with a skipped test."""


def build(target_dir: Path, *, without: Sequence[str] = ()) -> Path:
    """Path of the library, for `LD_LIBRARY_PATH=path.parent`; built once per source and safe in parallel runs.

    without: C functions the library shall not have, as in a driver older than they are.
    Raises StubUnavailable without gcc or header, and CalledProcessError when the source does not compile.
    """
    header = find_header()
    target_dir = target_dir.resolve()  # a child with another working directory must find it too
    library = target_dir / _digest(header, without) / _SONAME
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target_dir) as scratch:
            # Two runs may both compile; each puts a whole file in place.
            os.replace(_compile(Path(scratch), header, without), library)
    return library


def find_header() -> Path:
    """nvml.h of the installed nvidia-nvml-dev. Raises StubUnavailable when it, gcc or the C headers are missing."""
    if shutil.which("gcc") is None:
        raise StubUnavailable("gcc is not installed (Debian: apt-get install gcc libc6-dev)")
    asked = ["gcc", "-E", "-x", "c", "-include", "stdlib.h", "/dev/null"]
    if subprocess.run(asked, capture_output=True).returncode != 0:
        raise StubUnavailable("gcc finds no C headers (Debian: apt-get install libc6-dev)")
    try:
        files = importlib.metadata.files("nvidia-nvml-dev") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "nvml.h":
            return Path(str(file.locate()))
    raise StubUnavailable("nvml.h is not installed (pip install nvidia-nvml-dev)")


def _digest(header: Path, without: Sequence[str]) -> str:
    digest = hashlib.sha256(repr((_FLAGS, sorted(without))).encode())
    for source in (*_SOURCES, *_HEADERS, header):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _compile(scratch: Path, header: Path, without: Sequence[str]) -> Path:
    library, exports = scratch / _SONAME, scratch / "exports"
    hidden = "".join(f"{name}; " for name in without)
    exports.write_text(f"{{ local: {hidden or 'nothing_at_all;'} }};\n")
    command = ["gcc", *_FLAGS, "-fvisibility=hidden", f"-Wl,-soname,{_SONAME}", f"-Wl,--version-script={exports}"]
    command += [f"-I{header.parent}", *map(str, _SOURCES), "-o", str(library), "-lpthread"]
    subprocess.run(command, check=True)
    return library
