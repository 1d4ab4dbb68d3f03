"""What a made-up host is: its cards, what each is used for, and what is wrong with it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Optional

# Any fixed namespace will do; this one makes demo cards' UUIDs the demo's own.
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "demo.gua.invalid")


@dataclass(frozen=True)
class CardModel:
    """A kind of card. idle_w and peak_w: watts drawn doing nothing and at full load."""

    name: str
    memory_total_mb: int
    idle_w: float
    peak_w: float


H100 = CardModel("NVIDIA H100 80GB HBM3", 81559, 70.0, 690.0)
A100 = CardModel("NVIDIA A100-SXM4-80GB", 81920, 55.0, 400.0)
RTX4090 = CardModel("NVIDIA GeForce RTX 4090", 24564, 22.0, 440.0)


@dataclass(frozen=True)
class CardProfile:
    """One card. use: a key of `gua.demo.people.USES`."""

    model: CardModel
    use: str


@dataclass(frozen=True)
class HostProfile:
    """A made-up host.

    utc_offset_ms: how far its people's clocks are ahead of UTC, so that they work by day where the demo is shown.
    lost_card: index of a card that falls off the bus at lost_from_ms (Unix, UTC, milliseconds) and stays lost.
    """

    hostname: str
    cards: tuple[CardProfile, ...]
    utc_offset_ms: int = 0
    lost_card: Optional[int] = None
    lost_from_ms: Optional[int] = None

    @property
    def machine_id(self) -> str:
        return uuid.uuid5(_NAMESPACE, self.hostname).hex

    @property
    def boot_id(self) -> str:
        return str(uuid.uuid5(_NAMESPACE, f"{self.hostname}/boot"))


def card_uuid(hostname: str, index: int) -> str:
    """The UUID of a made-up card."""
    return f"GPU-{uuid.uuid5(_NAMESPACE, f'{hostname}/{index}')}"


def _cards(model: CardModel, uses: str) -> tuple[CardProfile, ...]:
    return tuple(CardProfile(model, use) for use in uses.split())


_H100_USES = "training training shared forgotten container forgotten office spare"
_A100_USES = "forgotten training shared forgotten office forgotten service training"
_4090_USES = "desktop office forgotten forgotten training empty training spare"

# The hosts of the demonstrations, by name. `demo` is the one that `gua demo` and `--fake` show.
DEMO_HOSTS: dict[str, HostProfile] = {
    "demo": HostProfile("demo", _cards(H100, _H100_USES)),
    "gpu01": HostProfile("gpu01", _cards(H100, _H100_USES)),
    "gpu02": HostProfile("gpu02", _cards(A100, _A100_USES), lost_card=7),
    "gpu03": HostProfile("gpu03", _cards(RTX4090, _4090_USES)),
}
