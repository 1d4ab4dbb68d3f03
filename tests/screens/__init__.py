"""Screens and tables in the documentation that come from the program itself.

`python -m tests.screens` writes them anew; a test fails when one is out of date. A block is what lies between
`<!-- screen: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from gua_fleet.free import Wanted as WantedCards
from gua_fleet.free import parse_memory_mb
from gua_fleet.render_table import render_fleet
from tests.screens.moment import NOW_MS, ROOT
from tests.screens.of_fleet import (
    DEMO_SEEN,
    demo_document,
    fleet_demo,
    fleet_doctor,
    fleet_sync,
    fleet_top,
    free,
    holds,
    report_csv,
    report_for_a_slide,
    report_help,
    report_mail,
    report_page,
    status,
)
from tests.screens.of_host import (
    agent_day,
    agent_week,
    explain_screen,
    holds_screen,
    report_csv_lines,
    status_screen,
    top_screen,
)
from tests.screens.of_past import compare_screen, datasets
from tests.screens.tables import (
    commands,
    doctor_checks,
    documents,
    fleet_settings,
    import_table,
    metrics,
    model_rules,
    outcomes,
    settings,
)

__all__ = ["BLOCKS", "FILES", "ROOT", "with_blocks"]


def _screen(text: str) -> str:
    return f"```text\n{text}```\n"


# file -> name of the block -> what belongs into it
BLOCKS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "README.md": {"fleet-demo": lambda: _screen(fleet_demo()), "commands": commands, "documents": documents},
    "docs/fleet-commands.md": {
        "free": lambda: _screen(free(WantedCards())),
        "free-wanted": lambda: _screen(free(WantedCards("H100", parse_memory_mb("40G"), 4 * 3600.0))),
        "holds": lambda: _screen(holds()),
        "top": lambda: _screen(fleet_top()),
        "status": lambda: _screen(status()),
        "doctor": lambda: _screen(fleet_doctor()),
        "sync-once": lambda: _screen(fleet_sync()),
    },
    "docs/fleet-ssh.md": {"outcomes": outcomes},
    "docs/fleet-report.md": {
        "report": lambda: _screen(render_fleet(demo_document())),
        "report-slide": lambda: _screen(report_for_a_slide()),
        "report-csv": lambda: _screen(report_csv()),
        "report-mail": lambda: _screen(report_mail()),
        "report-help": lambda: _screen(report_help()),
    },
    "docs/fleet-past.md": {
        "compare": lambda: _screen(compare_screen(NOW_MS, DEMO_SEEN["gpu04"])),
        "datasets": datasets,
    },
    "docs/settings.md": {"settings": settings, "model-rules": model_rules},
    "docs/daemon.md": {"status": lambda: _screen(status_screen())},
    "docs/metrics.md": {"metrics": metrics},
    "docs/doctor.md": {"doctor-checks": doctor_checks},
    "docs/ledger.md": {
        "holds": lambda: _screen(agent_day(holds_screen)),
        "explain": lambda: _screen(agent_day(explain_screen)),
        "top": lambda: _screen(agent_day(top_screen)),
    },
    "docs/import.md": {"import": lambda: _screen(import_table())},
    "docs/report.md": {
        "report-text": lambda: _screen(agent_week("text", ("--sensitivity",))),
        "report-csv": lambda: _screen(report_csv_lines()),
        "report-md": lambda: _screen(agent_week("md").partition("## 4.")[0]),
    },
    "docs/fleet.md": {"fleet-settings": fleet_settings},
}

# Files that the program writes whole.
FILES: Mapping[str, Callable[[], str]] = {
    "docs/report.html": lambda: agent_week("html"),
    "docs/fleet-report.html": report_page,
}


def with_blocks(text: str, blocks: Mapping[str, Callable[[], str]]) -> str:
    """`text` with its blocks filled anew. Raises ValueError when one is not there exactly once."""
    for name, make in blocks.items():
        begin, end = f"<!-- screen: {name} -->\n", "<!-- end -->"
        made = f"{begin}{make()}{end}"
        text, count = re.subn(re.escape(begin) + ".*?" + re.escape(end), lambda _, made=made: made, text, flags=re.S)
        if count != 1:
            raise ValueError(f"{count} blocks named {name}")
    return text
