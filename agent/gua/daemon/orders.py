"""What a daemon was told on its command line, and how it reads the rest again when it is asked to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from gua.config import Settings

if TYPE_CHECKING:
    from gua.cloud.config import CloudConfig


@dataclass(frozen=True)
class Orders:
    """load_settings: the settings in force now, with what the command line overrides. load_cloud: the enrolment with
    the board to push to; None: nowhere. Both raise GuaError. textfile: the directory for metrics, None: nowhere;
    per_user: with people's names in them. enrolment: its file, None: where it usually is.
    """

    database: Path
    pid_file: Path
    load_settings: Callable[[], Settings]
    fake: bool = False
    load_cloud: Optional[Callable[[], CloudConfig]] = None
    textfile: Optional[Path] = None
    per_user: bool = False
    enrolment: Optional[Path] = None
