"""The MIG instances of one card, each read as a card of its own; the card itself is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Callable, Optional, Union

from gua.model import READING_HANDLE, CardReading, Fault, FaultKind, LostSlot
from gua.nvml.attempts import Attempts
from gua.nvml.bindings import GPU_IS_LOST, CallFailed, call_number
from gua.nvml.cards import CardReader, Slot
from gua.nvml.gpm import GpmReader
from gua.nvml.instances import FIND, Instance, Place, describe_instance, find_instance, share_out
from gua.nvml.leave_out import LeaveOut, left_out
from gua.nvml.processes import Lists, read_lists

Found = Union[CardReading, LostSlot]

# Cards have room for 7. Every position is asked about, so rubbish here would take the time of all other cards.
_MOST_INSTANCES = 64


class MigReader:
    """Reads instances, and keeps the GPM counters of each until the next reading.

    enter: told the UUID of what is asked next. Between `begin` and `end`, every card with MIG on is read once.
    """

    def __init__(self, cards: CardReader, enter: Callable[[str], None]) -> None:
        self._cards = cards
        self._enter = enter
        self._gpm = GpmReader()
        self._seen: set[str] = set()
        self.pid_max = 0
        self.parents: list[str] = []

    def begin(self) -> None:
        self.parents.clear()
        self._seen.clear()

    def end(self) -> None:
        self._gpm.forget(self._seen)

    def close(self) -> None:
        self._gpm.forget()

    def read(self, card: Slot, leave_out: LeaveOut) -> Iterator[Found]:
        """The instances of one card, in order of position; a card with MIG on and no instance gives none."""
        self.parents.append(card.uuid)
        found = list(self._find(card, leave_out))
        lost = [entry for entry in found if isinstance(entry, LostSlot)]
        instances = [entry for entry in found if isinstance(entry, Instance)]
        yield from lost
        if instances:
            yield from self._read_all(card, instances, all_found=not lost)

    def _find(self, card: Slot, leave_out: LeaveOut) -> Iterator[Union[Instance, LostSlot]]:
        attempts = Attempts()
        asked = "nvmlDeviceGetMaxMigDeviceCount"
        count = attempts.take(READING_HANDLE, call_number, asked, card.handle, highest=_MOST_INSTANCES)
        if count is None:
            yield LostSlot(card.index, attempts.faults[READING_HANDLE], card.uuid)
        for position in range(count or 0):
            try:
                instance = find_instance(card.handle, position)
            except CallFailed as exc:
                yield LostSlot(card.index, exc.fault, card.uuid)
                if (exc.fault.call, exc.fault.error) == (FIND, GPU_IS_LOST):  # the card: every position says the same
                    return
                continue
            if instance is not None:
                yield self._describe(card, *instance, leave_out)

    def _describe(self, card: Slot, handle: Any, uuid: str, leave_out: LeaveOut) -> Union[Instance, LostSlot]:
        if uuid in leave_out:
            return left_out(card.index, leave_out[uuid], uuid)
        self._enter(uuid)
        instance = describe_instance(handle, uuid, card.uuid)
        self._enter(card.uuid)
        return instance

    def _read_all(self, card: Slot, instances: list[Instance], *, all_found: bool) -> Iterator[CardReading]:
        places = [instance.place for instance in instances]
        sharers = Counter(place.gpu_instance for place in places)
        for instance, lists in zip(instances, self._read_processes(card, instances, all_found)):
            self._enter(instance.uuid)
            self._seen.add(instance.uuid)
            slot = Slot(
                instance.handle,
                instance.uuid,
                card.index,
                card.pci_bus_id,
                instance.name,
                instance.mig,
                instance.attempts.faults,
            )
            yield self._cards.read_instance(slot, lists, self._util_of(card, instance, sharers))

    def _read_processes(self, card: Slot, instances: list[Instance], all_found: bool) -> list[Lists]:
        own = []
        for instance in instances:
            self._enter(instance.uuid)
            own.append(read_lists(instance.handle, self.pid_max))
        self._enter(card.uuid)
        places = [instance.place for instance in instances]
        return share_out(own, places, read_lists(card.handle, self.pid_max), all_found=all_found)

    def _util_of(self, card: Slot, instance: Instance, sharers: Mapping[Optional[int], int]) -> Callable[[], int]:
        def read() -> int:
            place = instance.place
            if place.gpu_instance is None or sharers[place.gpu_instance] > 1:
                raise CallFailed(_not_measurable(place))
            return self._gpm.read(card.handle, card.uuid, instance.uuid, place.gpu_instance)

        return read


def _not_measurable(place: Place) -> Fault:
    """The counters belong to the GPU instance: where compute instances share it, they tell of all of them together."""
    text = "the driver does not say which GPU instance this is"
    if place.gpu_instance is not None:
        text = f"GPU instance {place.gpu_instance} is shared by several compute instances, and counts them together"
    return Fault("nvmlGpmMigSampleGet", "MIG_INSTANCE", FaultKind.UNSUPPORTED, text)
