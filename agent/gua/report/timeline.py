"""The timeline of a report: each card's states step by step, with what was not seen. Pure but for the reader."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gua.coverage import SLOT_MS, Span, clip, length_ms, slot_ceil, slot_floor
from gua.report.document import CardSteps, Timeline
from gua.store.devices import DeviceRow, expected_spans
from gua.store.reader import StoreReader
from gua.store.steps import StepSums
from gua.units import MS_PER_SECOND, to_iso


def steps_of(reader: StoreReader, window: Span) -> StepSums:
    """The window in whole slots, so the first step may begin before it."""
    return reader.steps(slot_floor(window[0]) // SLOT_MS, slot_ceil(window[1]) // SLOT_MS)


def timeline_of(steps: StepSums, devices: Sequence[DeviceRow], shown: Collection[str], now_ms: int) -> Timeline:
    """The steps of the cards that are shown, by UUID. devices: all there are. Nothing is expected after `now_ms`."""
    return {
        "since": to_iso(steps.first * SLOT_MS),
        "step_s": steps.step * SLOT_MS // MS_PER_SECOND,
        "cards": [
            _card_steps(device, steps, expected_spans(device, devices, now_ms))
            for device in devices
            if device.uuid in shown
        ],
    }


def _card_steps(device: DeviceRow, steps: StepSums, expected: Sequence[Span]) -> CardSteps:
    rows = []
    for number in range(-(-(steps.end - steps.first) // steps.step)):
        start = steps.first + number * steps.step
        span = (start * SLOT_MS, min(start + steps.step, steps.end) * SLOT_MS)
        covered = steps.ms.get((device.id, number), [0, 0, 0, 0])
        unseen_ms = max(0, sum(length_ms(clip(part, span)) for part in expected) - sum(covered))
        rows.append([amount / MS_PER_SECOND for amount in (*covered, unseen_ms)])
    return {"card": device.uuid, "steps": rows}
