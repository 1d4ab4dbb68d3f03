"""What a process's cgroup paths tell: its container, its Slurm job, the login session's user. Pure.

Both cgroup versions write the same names; version 1 writes them once per controller:

    /system.slice/docker-64HEX.scope                                docker, systemd driver
    /docker/64HEX                                                   docker, cgroupfs driver
    /machine.slice/libpod-64HEX.scope/container                     podman
    /kubepods.slice/.../cri-containerd-64HEX.scope                  kubernetes on containerd (crio-64HEX: on CRI-O)
    /kubepods/burstable/podUUID/64HEX                               kubernetes, cgroupfs driver
    /system.slice/nerdctl-64HEX.scope  /default/64HEX               containerd by itself
    /lxc.payload.NAME/...  /lxc/NAME/...                            LXC, LXD, Incus
    /machine.slice/machine-NAME.scope/payload/...                   systemd-nspawn
    /system.slice/slurmstepd.scope/job_1234/step_0/user/task_0      Slurm, version 2
    /slurm/uid_1000/job_1234/step_batch                             Slurm, version 1
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Optional

# conmon is podman's and CRI-O's minder on the host side, not in the container
_CONTAINER = re.compile(
    r"(?:^|[/:-])(?<!conmon-)(?P<hex>[0-9a-f]{64})(?:\.scope)?(?=/|$)"
    r"|/(?:lxc\.payload[./]|lxc/)(?P<lxc>[^/]+)"
    r"|/machine-(?P<nspawn>[^/]+)\.scope/payload(?=/|$)"
)
_SLURM_JOB = re.compile(r"/job_(\d+)(?=/|$)")
# At the top only: below a container it is the container's systemd that numbers its own users
_USER_SLICE = re.compile(r"^(?:/\.\.)*/user\.slice/user-(\d+)\.slice(?=/|$)")
_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")  # how systemd writes `-` within a name

_SHORT_ID = 12  # as `docker ps` prints it


def container_id(cgroups: Sequence[str]) -> Optional[str]:
    """The whole id of the outermost container (the one the host's own tools list), or a system container's name."""
    found = next((match for match in map(_CONTAINER.search, cgroups) if match is not None), None)
    if found is None:
        return None
    return found["hex"] or found["lxc"] or _ESCAPED.sub(lambda code: chr(int(code.group(1), 16)), found["nspawn"])


def short_container_id(identifier: str) -> str:
    """As people know it: 12 digits of a hexadecimal id; a name stays whole, or two would become one."""
    return identifier[:_SHORT_ID] if re.fullmatch(r"[0-9a-f]{64}", identifier) else identifier


def slurm_job(cgroups: Sequence[str]) -> Optional[str]:
    """The number of the Slurm job a process runs in; what people name their own sessions' cgroups is none."""
    for path in cgroups:
        # Found in two steps: one pattern for both takes a quarter of a second for a path made to be slow
        start = -1 if _USER_SLICE.match(path) else path.find("slurm")
        job = None if start < 0 else _SLURM_JOB.search(path, start)
        if job is not None:
            return job.group(1)
    return None


def slice_uid(cgroups: Sequence[str]) -> Optional[int]:
    """The uid in `user-UID.slice`, systemd's place for what a user's sessions started."""
    found = next((match for match in map(_USER_SLICE.match, cgroups) if match is not None), None)
    return None if found is None else int(found.group(1))
