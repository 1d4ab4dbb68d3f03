"""Which card a person means by an index, a UUID or the beginning of one. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gua.errors import UsageError
from gua.report.cells import short_uuid
from gua.store.devices import DeviceRow
from gua.text import shown


def find_device(devices: Sequence[DeviceRow], wanted: str) -> DeviceRow:
    """The one card that `wanted` names: index, UUID, or a beginning that only one UUID has (with or without `GPU-`).

    A retired card is found by its UUID, and by its index where no other card has it now.
    Raises UsageError, naming the cards there are or those it could be.
    """
    exact = [one for one in devices if one.uuid == wanted]
    found = exact or _by_index(devices, wanted) or [one for one in devices if wanted and _begins(one.uuid, wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"--card {shown(wanted)} could be {_names(found)}: write more of its UUID")
    cards = f"this history has {_names(devices)}" if devices else "this history has no card yet"
    raise UsageError(f"--card {shown(wanted)}: no such card; {cards}")


def card_name(device: DeviceRow) -> str:
    """`0 GPU-1a2b3c4d`; `x` for the index of a card that is retired, `-` where none is known."""
    index = "-" if device.index is None else str(device.index)
    return f"{index if device.retired_at_ms is None else 'x'} {short_uuid(shown(device.uuid))}"


def _by_index(devices: Sequence[DeviceRow], wanted: str) -> list[DeviceRow]:
    if not (wanted.isascii() and wanted.isdecimal()):
        return []
    same = [one for one in devices if one.index == int(wanted)]
    return [one for one in same if one.retired_at_ms is None] or same


def _begins(uuid: str, wanted: str) -> bool:
    plain, text = uuid.lower(), wanted.lower()
    return plain.startswith(text) or plain.partition("-")[2].startswith(text)


def _names(devices: Sequence[DeviceRow]) -> str:
    return ", ".join(f"{card_name(one)} (retired)" if one.retired_at_ms else card_name(one) for one in devices)
