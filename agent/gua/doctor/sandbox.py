"""Check of what a unit's or a container's sandbox hides from the agent: the driver's devices, other people. Pure."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Optional

from gua.doctor.check import FAIL, OK, SKIP, WARN, Check
from gua.filesystem import find_filesystem_type

UNIT = "gua-agent.service"
# What hides other people's processes or their numbers from a unit, and the values that do not.
_PEOPLE_SEEN = {"ProtectProc": ("", "default"), "ProcSubset": ("", "all"), "PrivateUsers": ("", "no")}
UNIT_PROPERTIES = ("LoadState", "PrivateDevices", "DevicePolicy", "DeviceAllow", *_PEOPLE_SEEN)
# What systemd gives of the unit's properties, one `Name=value` a line.
UNIT_COMMAND = ("show", UNIT, f"--property={','.join(UNIT_PROPERTIES)}")

_UNIT_CURE = f"`systemctl edit {UNIT}`: PrivateDevices=no, DevicePolicy=auto; then restart it"
_OWN_CURE = "in a unit: PrivateDevices=no, DevicePolicy=auto; in a container: give it the devices (`--gpus all`)"


def check_sandbox(
    unit: str, mountinfo: str, *, driver_loaded: bool, control_there: bool, control_errno: Optional[int]
) -> Check:
    """Whether device files that the host has are kept from the agent, or the processes of others from its unit.

    unit: what systemd says of the agent's unit, empty where it says nothing. mountinfo: our own mount table.
    control_there, control_errno: whether /dev/nvidiactl is there for us, and why it cannot be opened (None: it can).
    """
    properties = _properties(unit)
    details = {"unit": properties, "dev": find_filesystem_type("/dev", mountinfo)}
    hidden = _hidden_by_unit(properties)
    if hidden is not None:
        return Check("sandbox", FAIL, f"{UNIT} hides the devices from the daemon: {hidden}", _UNIT_CURE, details)
    # udev makes its nodes in a devtmpfs; what has another /dev was given its own, with what somebody chose
    if driver_loaded and not control_there and details["dev"] != "devtmpfs":
        summary = "the driver is loaded, but this process has a /dev of its own without its device files"
        return Check("sandbox", FAIL, summary, _OWN_CURE, details)
    # EACCES is for rights of files, EPERM is the answer of a device policy
    if control_there and control_errno == errno.EPERM:
        return Check("sandbox", FAIL, "a device policy forbids /dev/nvidiactl to this process", _OWN_CURE, details)
    blind = [
        f"{name}={properties[name]}" for name, seen in _PEOPLE_SEEN.items() if properties.get(name, "") not in seen
    ]
    if blind:
        summary = f"{UNIT} hides other people from the daemon, so users will be unknown: {', '.join(blind)}"
        cure = f"`systemctl edit {UNIT}`: {', '.join(f'{name}={values[1]}' for name, values in _PEOPLE_SEEN.items())}"
        return Check("sandbox", WARN, summary, f"{cure}; then restart it", details)
    if not properties and not driver_loaded:
        return Check("sandbox", SKIP, "no driver whose devices could be hidden", None, details)
    return Check("sandbox", OK, "nothing hides the driver's device files or other people's processes", None, details)


def _properties(text: str) -> Mapping[str, str]:
    """Name -> value of a loaded unit; a list has a line for each of its entries, which are joined by blanks."""
    found: dict[str, str] = {}
    for name, _, value in (line.partition("=") for line in text.splitlines()):
        if name in UNIT_PROPERTIES:
            found[name] = f"{found[name]} {value}" if name in found else value
    return found if found.get("LoadState") == "loaded" else {}


def _hidden_by_unit(properties: Mapping[str, str]) -> Optional[str]:
    if properties.get("PrivateDevices") == "yes":
        return "PrivateDevices=yes"
    policy, allowed = properties.get("DevicePolicy", "auto"), properties.get("DeviceAllow", "")
    # With `auto`, naming any device forbids the others
    if (policy in ("closed", "strict") or allowed) and "nvidia" not in allowed:
        return f"DevicePolicy={policy}, and DeviceAllow names no nvidia device"
    return None
