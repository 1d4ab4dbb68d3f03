"""Everything the controller raises on purpose. Each FleetError ends the program as one line on stderr.

GuaError
└── FleetError         2  the command cannot start: option, inventory or configuration
    ├── InventoryError 2  no usable inventory: missing, empty, unreadable, vaulted, no hosts
    └── StoreUnusable  2  the fleet's history cannot be opened, or fails under way: not ours, newer, no permission, full
        └── StoreMissing 2  there is none yet

HostFailure               one host's trouble; becomes that host's outcome and never ends the run
"""

from __future__ import annotations

from gua.errors import ExitStatus, GuaError
from gua_fleet.model import Outcome, Stage


class FleetError(GuaError):
    """The command cannot start; the message names what is wrong, where, and the cure."""

    exit_status = ExitStatus.USAGE
    code = "fleet"


class InventoryError(FleetError):
    """The inventory cannot be used at all."""

    code = "inventory"


class StoreUnusable(FleetError):
    """The store of the fleet's history cannot be used. The message never holds a password."""

    code = "store"


class StoreMissing(StoreUnusable):
    """Nothing was ever pulled into the store."""

    code = "store_missing"


class HostFailure(Exception):
    """Why one host gave no answer: an outcome, one line of detail, and for time-outs the stage."""

    def __init__(self, outcome: Outcome, detail: str, stage: Stage | None = None) -> None:
        super().__init__(detail)
        self.outcome = outcome
        self.detail = detail
        self.stage = stage
