"""Made-up agents that answer `gua report` about now, and running `gua-fleet` on an inventory of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fleet.cli.test_commands import _inventory
from tests.fleet.ssh.sshd import REPOSITORY

# What its cards do is read anew each time, from `state.json` beside the agent: every time in it is seconds ago.
_BODY = """
from pathlib import Path
sys.path.insert(0, {repository!r})
from tests.documents import card, now, report, states
asked = dict(zip(sys.argv[1:], sys.argv[2:]))
state = json.loads((Path({folder!r}) / "state.json").read_text())
if sys.argv[1] == "status":
    if state["status"] is None:
        sys.stderr.write("gua: error: argument COMMAND: invalid choice: 'status' (choose from 'daemon', 'report')\\n")
        sys.exit(2)
    sys.stdout.write(frame(state["status"]))
    sys.exit(0)
def iso(ago):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(time.time()) + state["ahead_s"] - ago))
cards, holds = [], []
for index, one in enumerate(state["cards"]):
    uuid = f"GPU-{{state['name']}}-{{index}}"
    holders = [{{"type": "compute", "pid": 100 + n, "process": "python", "memory_mb": 1024, **each}}
               for n, each in enumerate(one.get("holders", []))]
    held = [holder.pop("held_s", None) for holder in holders]
    keys = ("user", "process", "pid", "memory_mb")
    holds += [{{**{{key: holder[key] for key in keys}}, "card": uuid, "since": iso(s), "until": None,
                "states": states(), "idle_held_long_card_s": 0.0}}
              for holder, s in zip(holders, held) if s is not None]
    cards.append(card(uuid, states(), index=index, samples=0, expected_card_s=0.0, unobserved_card_s=0.0,
                      **one.get("card", {{}}),
                      now=now(one["state"], at=iso(one.get("seen_s", 5)), since=iso(one.get("since_s", 3600)),
                              memory_used_mb=one.get("used_mb", 3), reason=one.get("reason"), holders=holders)))
document = report(cards, store_id=state["name"], holds=holds, generated_at=iso(0), tz=asked["--tz"],
                  window={{"since": asked["--since"], "until": asked["--until"], "history_begins": None}})
document["host"].update(state["host"])
sys.stdout.write(frame(document))
"""


def write_state(
    folder: Path, name: str, cards: list[dict[str, Any]], ahead_s: int = 0, status: object = None, **host: object
) -> None:
    """What the agent of host `name` says from now on. ahead_s: how far its clock is. status: its `gua.status/1`; None:
    it is too old to know that.
    """
    (folder / name).mkdir(exist_ok=True)
    state = {"name": name, "cards": cards, "ahead_s": ahead_s, "host": host, "status": status}
    (folder / name / "state.json").write_text(json.dumps(state))


def reporting_body(folder: Path, name: str) -> str:
    return _BODY.format(repository=str(REPOSITORY), folder=str(folder / name))


def fleet_of(
    folder: Path, hosts: Mapping[str, list[dict[str, Any]] | None], variables: Mapping[str, Mapping[str, Any]] = {}
) -> str:
    """An inventory whose hosts say this of their cards; None: there is no agent. Gives its path."""
    for name, cards in hosts.items():
        if cards is not None:
            write_state(folder, name, cards)
    bodies = {name: None if cards is None else reporting_body(folder, name) for name, cards in hosts.items()}
    file = _inventory(folder, bodies)
    inventory = json.loads(file.read_text())
    for name, more in variables.items():
        inventory["all"]["hosts"].setdefault(name, {}).update(more)
    file.write_text(json.dumps(inventory))
    return str(file)
