from typing import Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gua.identity.containers import container_id, short_container_id, slice_uid, slurm_job

ID = "4f5a" * 16
OTHER = "0b1c" * 16


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"/system.slice/docker-{ID}.scope", ID),
        (f"/docker/{ID}", ID),
        (f"/docker/{ID}/init.scope", ID),
        (f"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope/container", ID),
        (f"/machine.slice/libpod-{ID}.scope", ID),
        (f"/machine.slice/libpod-conmon-{ID}.scope", None),
        (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/cri-containerd-{ID}.scope", ID),
        (f"/kubepods.slice/kubepods-pod9.slice/crio-{ID}.scope", ID),
        (f"/kubepods.slice/kubepods-pod9.slice/crio-conmon-{ID}.scope", None),
        (f"/kubepods/besteffort/pod0b1c/{ID}", ID),
        (f"/system.slice/containerd.service/kubepods-burstable-pod1.slice:cri-containerd:{ID}", ID),
        (f"/docker/{OTHER}/docker/{ID}", OTHER),
        (f"/system.slice/nerdctl-{ID}.scope", ID),
        (f"/default/{ID}", ID),
        (f"/libpod_parent/libpod-{ID}", ID),
        (f"/machine.slice/libpod-{ID}.scope/container/init.scope", ID),
        (f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod7_1.slice/docker-{ID}.scope", ID),
        (f"/kubepods/podb1f3/crio-{ID}", ID),
        (f"/docker/{OTHER}/kubepods/besteffort/podb1f3/{ID}", OTHER),  # kind: Kubernetes in docker
        (f"/lxc.payload.web/docker/{ID}", "web"),
        (f"/docker/{OTHER}/lxc.payload.web", OTHER),
        ("/lxc.payload/web", "web"),
        (r"/machine.slice/machine-my\x2dbox.scope/payload/system.slice", "my-box"),
        (r"/machine.slice/machine-qemu\x2d1\x2dvm.scope/libvirt/emulator", None),
        (f"/../../docker/{ID}", ID),
        ("/lxc.payload.student-host-2/user.slice", "student-host-2"),
        ("/lxc/web/init.scope", "web"),
        ("/lxc.monitor.web", None),
        (f"/system.slice/notes-{ID[:12]}.scope", None),
        (f"/{ID}ab", None),
        ("/", None),
        ("", None),
    ],
)
def test_a_container_is_known_by_its_cgroup(path: str, expected: Optional[str]) -> None:
    assert container_id((path,)) == expected


def test_any_of_the_version_1_controllers_may_tell() -> None:
    assert container_id(("/", "/user.slice", f"/docker/{ID}")) == ID


def test_hexadecimal_ids_are_shortened_and_names_are_not() -> None:
    assert short_container_id(ID) == "4f5a4f5a4f5a"
    assert short_container_id("student-host-2") == "student-host-2"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/system.slice/slurmstepd.scope/job_1234/step_0/user/task_0", "1234"),
        ("/slurm/uid_1000/job_77/step_batch", "77"),
        ("/slurm_gpu07/uid_1000/job_77/step_0/task_0", "77"),
        ("/system.slice/gpu07_slurmstepd.scope/job_5/step_batch/user/task_special", "5"),
        (f"/slurm/uid_1000/job_6/step_0/docker/{ID}", "6"),
        ("/user.slice/user-1000.slice/job_9", None),
        ("/user.slice/user-1000.slice/user@1000.service/slurm/job_9", None),
        ("/slurm/uid_1000/job_x", None),
    ],
)
def test_a_slurm_job_is_known_by_its_cgroup(path: str, expected: Optional[str]) -> None:
    assert slurm_job((path,)) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/user.slice/user-1000.slice/session-3.scope", 1000),
        ("/user.slice/user-1000.slice/user@1000.service/app.slice", 1000),
        ("/../../user.slice/user-1000.slice/session-3.scope", 1000),
        (f"/docker/{ID}/user.slice/user-1000.slice/session-1.scope", None),  # the container's own user 1000
        ("/lxc.payload.web/user.slice/user-1000.slice", None),
        ("/user.slice", None),
        ("/system.slice/user-tools.slice", None),
    ],
)
def test_a_session_names_its_user(path: str, expected: Optional[int]) -> None:
    assert slice_uid((path,)) == expected


@given(st.text())
def test_no_path_is_too_odd(path: str) -> None:
    container_id((path,))
    slurm_job((path,))
    slice_uid((path,))
