from pathlib import Path

from gua.model import CardReading, Mig, Reason
from gua.pci import PciDevice, is_gpu_less, missing_on_nvml, read_nvidia_devices, sysfs_root


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


def test_a_host_is_without_a_card_only_where_its_bus_could_be_looked_at(tmp_path: Path) -> None:
    """A container may hide all of sysfs: then a card whose driver is broken would read as none."""

    def gpu_less() -> bool:
        return is_gpu_less(read_nvidia_devices(tmp_path), tmp_path, tmp_path)

    assert not gpu_less()
    (tmp_path / "bus").mkdir()
    assert gpu_less()  # a board that has no PCI bus
    (tmp_path / "bus/pci").mkdir()
    assert not gpu_less()  # a bus that shows no devices, not even none
    (tmp_path / "bus/pci/devices").mkdir()
    assert gpu_less()
    add_device(tmp_path, "0000:3b:00.0")
    assert not gpu_less()


def test_a_device_that_leaves_while_it_is_read_is_no_card(tmp_path: Path) -> None:
    (tmp_path / "bus/pci/devices/0000:3b:00.0").mkdir(parents=True)
    assert read_nvidia_devices(tmp_path) == ()


def test_sysfs_root_can_be_brought_along() -> None:
    assert sysfs_root({"GUA_SYSFS_ROOT": "/x"}) == Path("/x")
    assert sysfs_root({}) == Path("/sys")


TWO = (PciDevice("0000:01:00.0", "nvidia"), PciDevice("0000:3b:00.0", "nvidia"))
FIRST = CardReading("GPU-a", 0, pci_bus_id="00000000:01:00.0")


def test_a_device_that_no_card_explains_is_missing() -> None:
    assert missing_on_nvml(TWO, [FIRST], (), 0) == TWO[1:]
    second = CardReading("GPU-b", 1, pci_bus_id="00000000:3B:00.0")
    assert missing_on_nvml(TWO, [FIRST, second], (), 0) == ()


def test_a_known_card_that_is_absent_is_told_already() -> None:
    lost = CardReading("GPU-b", 1, pci_bus_id="00000000:3B:00.0", absent=Reason.CARD_MISSING)
    assert missing_on_nvml(TWO, [FIRST, lost], (), 0) == ()


def test_what_may_be_the_device_under_no_address_is_taken_for_it() -> None:
    assert missing_on_nvml(TWO, [FIRST, CardReading("GPU-b", 1)], (), 0) == ()
    assert missing_on_nvml(TWO, [FIRST], ("GPU-b",), 0) == ()  # cut into instances, and has none now
    assert missing_on_nvml(TWO, [FIRST], (), 1) == ()  # a slot that cannot be opened
    instances = [CardReading(f"MIG-{n}", 1, mig=Mig("GPU-b", "1g.10gb")) for n in range(2)]
    assert missing_on_nvml(TWO, instances, ("GPU-b",), 0) == TWO  # both instances are one card


def test_a_device_given_to_a_virtual_machine_is_not_missed() -> None:
    assert missing_on_nvml([PciDevice("0000:3b:00.0", "vfio-pci")], [FIRST], (), 0) == ()
    assert len(missing_on_nvml([PciDevice("0000:3b:00.0", None)], [FIRST], (), 0)) == 1
