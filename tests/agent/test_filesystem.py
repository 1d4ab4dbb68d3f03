from pathlib import Path
from typing import Optional

import pytest

from gua.filesystem import find_filesystem_type, is_network_type, read_filesystem_type

MOUNTS = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:20 / /proc rw - proc proc rw
40 22 0:45 /vol /home rw,noatime shared:9 - nfs4 server:/vol rw,vers=4.2
41 40 0:46 / /home/local\040disk rw - xfs /dev/sdb rw
42 22 0:47 / /mnt/over rw - ext4 /dev/sdc rw
43 22 0:48 / /mnt/over rw - fuse.sshfs host:/ rw
broken line
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/var/lib/gua/gua.db", "ext4"),
        ("/home/alice/.gua", "nfs4"),
        ("/home", "nfs4"),
        ("/homework/x", "ext4"),
        ("/home/local disk/x", "xfs"),
        ("/mnt/over/x", "fuse.sshfs"),
    ],
)
def test_the_deepest_and_newest_mount_wins(path: str, expected: str) -> None:
    assert find_filesystem_type(path, MOUNTS) == expected


def test_no_table_is_unknown(tmp_path: Path) -> None:
    assert read_filesystem_type(tmp_path, tmp_path / "none") is None
    assert find_filesystem_type("/x", "") is None


@pytest.mark.parametrize(
    ("kind", "network"), [("nfs", True), ("fuse.sshfs", True), ("lustre", True), ("ext4", False), ("overlay", False)]
)
def test_shared_file_systems_are_told_from_local_ones(kind: Optional[str], network: bool) -> None:
    assert is_network_type(kind or "") is network
