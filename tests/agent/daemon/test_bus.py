from pathlib import Path

from gua.daemon.bus import PciBus
from gua.model import CardReading, CardTick, Evidence, State, Tick, TickStatus, Verdict
from tests.agent.fakes import FakeClock
from tests.agent.test_pci import add_device


def tick(*addresses: str, status: TickStatus = TickStatus.OK) -> Tick:
    cards = [CardReading(f"GPU-{n}", n, pci_bus_id=address) for n, address in enumerate(addresses)]
    judged = tuple(CardTick(card, Evidence(), Verdict(State.TRULY_IDLE)) for card in cards)
    return Tick(0, status, 30_000, judged)


def test_a_card_that_nvml_hides_is_told_until_it_is_listed(tmp_path: Path) -> None:
    for address in ("0000:01:00.0", "0000:3b:00.0"):
        add_device(tmp_path, address, driver="nvidia")
    bus = PciBus(tmp_path, tmp_path, FakeClock())
    (told,) = bus.troubles(tick("00000000:01:00.0"))
    assert "0000:3b:00.0" in told
    assert bus.troubles(tick(status=TickStatus.ERROR)) == {told}  # a driver that is down says nothing about it
    assert bus.troubles(tick("00000000:01:00.0", "00000000:3B:00.0")) == frozenset()


def test_the_bus_is_read_again_after_ten_minutes(tmp_path: Path) -> None:
    clock = FakeClock()
    bus = PciBus(tmp_path, tmp_path, clock)
    assert bus.troubles(tick("00000000:01:00.0")) == frozenset()
    add_device(tmp_path, "0000:3b:00.0")
    clock.sleep_s(599.0)
    assert bus.troubles(tick("00000000:01:00.0")) == frozenset()
    clock.sleep_s(1.0)
    assert len(bus.troubles(tick("00000000:01:00.0"))) == 1


def test_a_host_without_a_card_has_none(tmp_path: Path) -> None:
    (tmp_path / "bus/pci/devices").mkdir(parents=True)
    assert PciBus(tmp_path, tmp_path, FakeClock()).has_no_gpu()
    add_device(tmp_path, "0000:3b:00.0")
    assert not PciBus(tmp_path, tmp_path, FakeClock()).has_no_gpu()
