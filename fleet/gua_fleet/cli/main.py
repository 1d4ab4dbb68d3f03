"""Entry of `gua-fleet`: registers commands; errors become one line. No logic lives here."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gua.cli.main import run_command
from gua_fleet.cli.settle import settle_options

# name -> (module, one line of help). Order is the order of `gua-fleet --help`.
COMMANDS: dict[str, tuple[str, str]] = {
    "hosts": ("gua_fleet.cli.hosts", "what was understood of the inventory, and which hosts are skipped"),
    "doctor": (
        "gua_fleet.cli.doctor",
        "run `gua doctor` on every host, and say which agents this `gua-fleet` cannot read",
    ),
    "status": ("gua_fleet.cli.status", "does every host sample, and how much of the last day was seen"),
    "sync-once": ("gua_fleet.cli.sync_once", "sample every host now and show the fleet as it is"),
    "free": ("gua_fleet.cli.free", "which cards are free now"),
    "holds": ("gua_fleet.cli.holds", "who holds which card now, and how long it has been idle"),
    "top": ("gua_fleet.cli.top", "the fleet live: one line a host, one cell a card"),
    "report": ("gua_fleet.cli.report", "the cluster tables, merged from every host's own history"),
    "pull": ("gua_fleet.cli.pull", "copy what is new in every host's history into the fleet's store"),
    "export": ("gua_fleet.cli.export", "the pulled history as Parquet or CSV files, for analysts"),
    "forget": ("gua_fleet.cli.forget", "remove a host from the store"),
    "forget-user": ("gua_fleet.cli.forget_user", "take a person's name out of the store, and keep it out"),
    "store": ("gua_fleet.cli.store_care", "info, check or vacuum the store of the fleet's history"),
    "preflight": (
        "gua_fleet.cli.deploy",
        "whether the agent can be put on each host, and whether the one there can be read; changes nothing",
    ),
    "deploy": ("gua_fleet.cli.deploy", "put the agent on the hosts, a canary first; what fails is taken back"),
    "upgrade": (
        "gua_fleet.cli.deploy",
        "put this gua-fleet's version of the agent on the hosts, and never an older one",
    ),
    "verify": ("gua_fleet.cli.deploy", "which release runs on each host, and whether it is well; changes nothing"),
    "rollback": ("gua_fleet.cli.deploy", "go back to the release that ran before, needing nothing but SSH"),
    "undeploy": ("gua_fleet.cli.deploy", "take the agent away; history and settings stay"),
    "enroll": ("gua_fleet.cli.deploy", "make the hosts known to a board"),
    "wheelhouse": ("gua_fleet.cli.deploy", "fetch what hosts would need onto this machine, ahead of a deployment"),
    "config": ("gua_fleet.cli.config", "check or show the settings of gua-fleet.yml; `config --help` lists them all"),
    "demo": ("gua_fleet.cli.demo", "a small made-up fleet on this machine, without a GPU"),
    "completion": ("gua.cli.completion", "print what a shell needs to complete this program's words"),
    "version": ("gua.cli.version", "print the version"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """The `gua-fleet` command. Returns its exit status."""
    return run_command("gua-fleet", COMMANDS, sys.argv[1:] if argv is None else argv, settle_options)
