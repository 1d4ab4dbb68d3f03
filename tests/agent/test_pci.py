from pathlib import Path

from gua.pci import PciDevice, read_nvidia_devices, sysfs_root


def add_device(root: Path, address: str, *, vendor: str = "0x10de", klass: str = "0x030200", driver: str = "") -> Path:
    entry = root / "bus/pci/devices" / address
    entry.mkdir(parents=True)
    (entry / "vendor").write_text(vendor + "\n")
    (entry / "class").write_text(klass + "\n")
    if driver:
        (entry / "driver").symlink_to(f"../../drivers/{driver}")
    return entry


def test_only_nvidia_display_devices_count_as_cards(tmp_path: Path) -> None:
    add_device(tmp_path, "0000:3b:00.0", driver="nvidia")
    add_device(tmp_path, "0000:3b:00.1", klass="0x040300", driver="snd_hda_intel")
    add_device(tmp_path, "0000:18:00.0", klass="0x030000")
    add_device(tmp_path, "0000:02:00.0", vendor="0x1a03", klass="0x030000")
    assert read_nvidia_devices(tmp_path) == (PciDevice("0000:18:00.0", None), PciDevice("0000:3b:00.0", "nvidia"))


def test_virtual_functions_are_not_cards(tmp_path: Path) -> None:
    physical = add_device(tmp_path, "0000:3b:00.0", driver="nvidia")
    (add_device(tmp_path, "0000:3b:00.4") / "physfn").symlink_to(physical)
    assert [device.address for device in read_nvidia_devices(tmp_path) or ()] == ["0000:3b:00.0"]


def test_a_bus_without_nvidia_is_empty_and_no_bus_is_unknown(tmp_path: Path) -> None:
    assert read_nvidia_devices(tmp_path) is None
    add_device(tmp_path, "0000:00:00.0", vendor="0x8086")
    assert read_nvidia_devices(tmp_path) == ()


def test_a_device_that_leaves_while_it_is_read_is_no_card(tmp_path: Path) -> None:
    (tmp_path / "bus/pci/devices/0000:3b:00.0").mkdir(parents=True)
    assert read_nvidia_devices(tmp_path) == ()


def test_sysfs_root_can_be_brought_along() -> None:
    assert sysfs_root({"GUA_SYSFS_ROOT": "/x"}) == Path("/x")
    assert sysfs_root({}) == Path("/sys")
