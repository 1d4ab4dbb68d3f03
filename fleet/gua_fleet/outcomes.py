"""What each outcome of a host means and what to do about it, for people."""

from __future__ import annotations

from collections.abc import Mapping

from gua_fleet.model import Outcome

# outcome -> (what it means, what to do)
MEANINGS: Mapping[Outcome, tuple[str, str]] = {
    Outcome.OK: ("it answered", "nothing"),
    Outcome.UNREACHABLE: (
        "no connection: its name, the network, its `sshd`, or the jump host before it; or the connection was lost",
        "read its line; try `ssh HOST`",
    ),
    Outcome.AUTH_FAILED: (
        "it let none of our keys in; its line says what was tried and what it takes",
        "add the key there, `ssh-add`, or `--ask-pass`",
    ),
    Outcome.HOST_KEY_UNKNOWN: ("nobody has vouched for its key yet", "`ssh HOST` once, or `--accept-new`"),
    Outcome.HOST_KEY_CHANGED: (
        "its key is not the one on file, or is revoked",
        "find out why; after a re-installation run the command in its line",
    ),
    Outcome.TIMEOUT: (
        "it did not answer in time, at the stage named: `connect`, `auth`, `open`, `exec`, `output`",
        "look whether it is up and not stuck; else a longer `--timeout`",
    ),
    Outcome.AGENT_MISSING: (
        "there is no agent where one was looked for",
        "deploy it, or set `gua_command`",
    ),
    Outcome.AGENT_ERROR: ("the agent failed or was killed", "its line has its words; run `gua doctor` there"),
    Outcome.BAD_OUTPUT: (
        "something answered that is not a whole, right document: another version, an rc file that exits, `nologin`",
        "bring agent and `gua-fleet` to one version; mend the account's shell",
    ),
    Outcome.NEEDS_PRIVILEGE: (
        "the account may not do that there",
        "the readers' group, a sudo rule, or `--ask-become-pass`",
    ),
    Outcome.STORE_FAILED: (
        "the store on this side could not take its history; what was stored before is whole",
        "mend what the line says, and pull again",
    ),
    Outcome.PAUSED: ("`gua pause` stands there, so nothing was measured", "nothing; `gua resume` there ends it"),
    Outcome.NO_GPU: ("it has no NVIDIA card", "nothing"),
    Outcome.NO_HISTORY: ("the agent is there but has recorded nothing yet", "start its service"),
    Outcome.MAINTENANCE: ("the inventory says `gua_maintenance`", "nothing"),
    Outcome.SKIPPED: ("the inventory gives no usable connection for it", "mend what its line names"),
    Outcome.STORED: ("nobody asked it: its history is the store's (`--from store`)", "nothing"),
}
