"""What the doctor asks beyond a sample: `python -m gua.nvml.modes /dev/nvidiactl` prints it as one line of JSON.

    {"control_errno": null, "library_version": "570.86.15", "bindings_version": "13.580.82",
     "cards": [{"uuid": "GPU-a", "persistence": true, "mig": [1, 1]}]}

A process of its own, because NVML calls may block for ever: whoever starts it waits for a limited time. control_errno:
why the driver's control device cannot be opened, None when it can. library_version: that of libnvidia-ml, told also
where NVML cannot start. persistence, mig (now and after the next reset): None where the card cannot say.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Optional

from gua.nvml.bindings import CallFailed, call, call_number, call_text

# The file that the loader mapped carries its version: libnvidia-ml.so.570.86.15
_LIBRARY = re.compile(r"/libnvidia-ml\.so\.(\d+\.\d+[\d.]*)$", re.MULTILINE)
# NVML's own version begins with that of CUDA: 12.570.86.15
_NVML_VERSION = re.compile(r"^\d+\.(\d+\.\d+(?:\.\d+)?)$")


def read_modes(control: str) -> dict[str, Any]:
    """Everything, as far as it can be read. Calls of NVML may block for ever."""
    cards: list[dict[str, Any]] = []
    try:
        call("nvmlInit")
        cards = [_card(index) for index in range(call("nvmlDeviceGetCount"))]
    except CallFailed:
        pass  # the sample that was taken before says what is wrong
    return {
        "control_errno": _open_errno(control),
        "library_version": _library_version(),
        "bindings_version": _bindings_version(),
        "cards": [card for card in cards if card["uuid"] is not None],
    }


def _card(index: int) -> dict[str, Any]:
    try:
        handle = call("nvmlDeviceGetHandleByIndex", index)
        uuid = call_text("nvmlDeviceGetUUID", handle)
    except CallFailed:
        return {"uuid": None}
    return {"uuid": uuid, "persistence": _persistence(handle), "mig": _mig(handle)}


def _persistence(handle: Any) -> Optional[bool]:
    try:
        return call_number("nvmlDeviceGetPersistenceMode", handle, highest=1) == 1
    except CallFailed:
        return None


def _mig(handle: Any) -> Optional[list[int]]:
    try:
        return [int(mode) for mode in call("nvmlDeviceGetMigMode", handle)]
    except CallFailed:
        return None


def _open_errno(path: str) -> Optional[int]:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError as exc:
        return exc.errno
    return None


def _library_version() -> Optional[str]:
    try:
        found = _NVML_VERSION.match(call_text("nvmlSystemGetNVMLVersion"))
    except CallFailed:
        found = None
    found = found or _LIBRARY.search(Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace"))
    return None if found is None else found.group(1)


def _bindings_version() -> Optional[str]:
    try:
        return metadata.version("nvidia-ml-py")
    except metadata.PackageNotFoundError:
        return None


def main(argv: Sequence[str]) -> int:
    """Print it."""
    if len(argv) != 2:
        sys.stderr.write("gua.nvml.modes is started by `gua doctor`; run that instead\n")
        return 2
    sys.stdout.write(json.dumps(read_modes(argv[1])) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
