"""The key of gpu_sample: tick and card in one integer, a fifth smaller on disk than two columns."""

from __future__ import annotations

# Low bits of a sample's id; more cards than any host will meet in its life, MIG instances included.
DEVICE_BITS = 16


def sample_id(tick: int, device: int) -> int:
    """Key of gpu_sample: ascending by tick, then device. Raises ValueError when the device does not fit."""
    if device >> DEVICE_BITS:
        raise ValueError(f"device {device} does not fit into {DEVICE_BITS} bits")
    return tick << DEVICE_BITS | device


def sample_ids(first_tick: int, last_tick: int) -> tuple[int, int]:
    """Lowest and highest id of the samples of these ticks, both included."""
    return first_tick << DEVICE_BITS, (last_tick + 1 << DEVICE_BITS) - 1
