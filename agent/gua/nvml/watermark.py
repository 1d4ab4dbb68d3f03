"""Which of the samples that a driver keeps are new. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Watermark:
    """Remembers the newest sample seen of one card; timestamps are the driver's, in microseconds."""

    def __init__(self) -> None:
        self._newest_us = 0
        self._nothing_new = True

    @property
    def since_us(self) -> int:
        """What to ask from. After an answer without anything new it is 0, everything: only that shows whether the
        driver's clock was set back, and its samples would never be newer than those seen before."""
        return 0 if self._nothing_new else self._newest_us

    def take(self, samples: Sequence[Any]) -> list[Any]:
        """Those newer than all before, of the driver's answer; each has a timeStamp.

        Empty on the first look, which only says from where to count, and when the clock went back.
        """
        newest_us = max((int(sample.timeStamp) for sample in samples), default=0)
        comparable = 0 < self._newest_us <= newest_us
        new = [sample for sample in samples if comparable and sample.timeStamp > self._newest_us]
        self._nothing_new = not new
        self._newest_us = newest_us or self._newest_us
        return new
