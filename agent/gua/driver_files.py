"""Which driver the kernel has loaded, and which library a program that begins now would load: by files alone.

After an upgrade the two differ until the modules are loaded anew. Who has the old library loaded, as a running daemon
has, goes on; who begins now fails. Everybody may read these files, so the daemon, its status and the doctor agree.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

NAME = "libnvidia-ml.so.1"
# What the dynamic loader looks up, beside the paths that the environment names.
LOADER_CACHE = Path("/etc/ld.so.cache")
_CACHED = re.compile(rb"/[^\0]*/" + re.escape(NAME.encode()) + rb"(?=\0)")
_MODULE_VERSION = re.compile(r"Kernel Module\b.*?\s(\d+\.\d+(?:\.\d+)?)\s")
_LIBRARY_VERSION = re.compile(r"\.so\.(\d+\.\d+(?:\.\d+)?)$")
# NVML's word for it.
MISMATCH = "LIB_RM_VERSION_MISMATCH"
REMOVED = "LIBRARY_NOT_FOUND"
# What a daemon that ticked before the upgrade does; of whom is said before it.
SAMPLES_ON = (
    "samples on with the library loaded before, but will not after its next start, and no new job can use the cards"
)
# The same, where who begins now finds no library at all: it may be gone, or be where only the daemon looks.
HAS_ONE = "samples on with the library that it has loaded, and none is found from here"


@dataclass(frozen=True)
class DriverFiles:
    """module: version of the loaded kernel module. library: of the library that would be loaded now.

    None where there is none, or where it does not tell.
    """

    module: Optional[str]
    library: Optional[str]

    @property
    def differ(self) -> bool:
        """Whether it is sure that a program that begins now cannot use the driver."""
        return self.module is not None and self.library is not None and self.module != self.library

    def __str__(self) -> str:
        return f"kernel module {self.module or 'of another version'}, library {self.library or 'of another version'}"


def read_driver_files(procfs: Path, environ: Mapping[str, str] = os.environ, cache: Path = LOADER_CACHE) -> DriverFiles:
    """Both versions, as they are now. cache: of the dynamic loader."""
    return DriverFiles(read_module_version(procfs), read_library_version(environ, cache))


def read_module_version(procfs: Path) -> Optional[str]:
    """Version of the loaded kernel module; None when none is loaded."""
    try:
        text = (procfs / "driver/nvidia/version").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = _MODULE_VERSION.search(text)
    return found.group(1) if found else None


def read_library_version(environ: Mapping[str, str], cache: Path) -> Optional[str]:
    """Version in the name of the file that `libnvidia-ml.so.1` is; None where it is not found, or has none there.

    The cache may list several, of other architectures or of an installation before, and their paths lie in it in no
    order that says which one is loaded. So where they do not agree, it is not known.
    """
    for folder in filter(None, environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)):
        if os.path.exists(os.path.join(folder, NAME)):
            return _version_of(os.path.join(folder, NAME))
    versions = {_version_of(path) for path in _cached(cache) if os.path.exists(path)}
    return versions.pop() if len(versions) == 1 else None


def _version_of(path: str) -> Optional[str]:
    found = _LIBRARY_VERSION.search(os.path.realpath(path))
    return found.group(1) if found else None


def _cached(cache: Path) -> Iterator[str]:
    """The paths that the dynamic loader's cache has for that name."""
    try:
        yield from map(os.fsdecode, _CACHED.findall(cache.read_bytes()))
    except OSError:
        return
