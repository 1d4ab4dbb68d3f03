"""Is the agent of this host well? Run on the host by Ansible, with the host's own Python and nothing else.

Arguments: one JSON object. unit, config, database, gua (the command): what is asked about. environment: what the agent
is run with. version: what it must be, "" any. since: the newest sampling must not be older (UTC, ISO 8601), "" any.
driver: whether the cards must answer. timeout_s: how long to wait until all is well. settle_s: how long it must then
go on without being started anew.

Prints one JSON object: healthy, reason (one line, "" when healthy), told (what the doctor found worth a word), version,
active, main_pid, restarts, last_tick_at, last_tick_status, last_tick_age_s, paused, enrolled (null: not told), board
(what the board took, as in gua.status/1; null: not enrolled, or not told), accepted (the same in a few words, "" for
null), and journal ("" when healthy): what systemd and the journal say.
"""

import json
import subprocess
import sys
import time

# What is wrong with the driver or its cards. Without a driver these fail on a host whose agent is as well as can be.
OF_THE_DRIVER = {"device_files", "pci", "nvidia_smi", "nvml", "driver_match", "bindings", "mig", "persistence_mode"}
# A card that fell off the bus makes samplings partial: the agent there works, it is what tells of the card.
OF_A_LOST_CARD = {"pci", "nvml"}
ASKING_S = 60
PROPERTIES = ("ActiveState", "SubState", "MainPID", "NRestarts", "Result")


def run(command):
    """(status, stdout, stderr); status 127 for what cannot be run, 124 for what does not end."""
    try:
        done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=ASKING_S)
    except OSError as exc:
        return 127, "", str(exc)
    except subprocess.TimeoutExpired:
        return 124, "", f"{command[0]} did not end within {ASKING_S} s"
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def read_unit(options):
    """The unit's properties as systemd tells them, by name; empty where it tells none."""
    command = ["systemctl", "show", "--property=" + ",".join(PROPERTIES), options["unit"]]
    return dict(line.split("=", 1) for line in run(command)[1].splitlines() if "=" in line)


def read_doctor(options):
    """(the checks by id, what it said instead). As the service's user: root may do more than the service."""
    variables = [f"{name}={value}" for name, value in sorted(options["environment"].items())]
    asked = [options["gua"], "doctor", "--json", "--settings", options["config"], "--db", options["database"]]
    _, printed, said = run(["runuser", "-u", "gua", "--", "env", *variables, *asked])
    try:
        return {check["id"]: check for check in json.loads(printed)["checks"]}, ""
    except (ValueError, LookupError, TypeError):
        lines = said.strip().splitlines()
        return {}, lines[-1] if lines else "the doctor said nothing"


def read_version(options):
    """What `gua --version` says, without its name; "" when it says nothing."""
    words = run([options["gua"], "--version"])[1].split()
    return words[-1] if words else ""


def daemon_details(checks):
    return checks.get("daemon", {}).get("details", {})


def judge(unit, checks, said, version, options):
    """Why the agent is not well, in one line; "" when it is. Pure."""
    if unit.get("ActiveState") != "active":
        return f"the unit is {unit.get('ActiveState', 'not known to systemd')}"
    if options["version"] and version != options["version"]:
        return f"it is version {version or 'unknown'}, not {options['version']}"
    if not checks:
        return said
    details = daemon_details(checks)
    failed = [check for check in checks.values() if check["status"] == "fail"]
    if details.get("paused_since"):
        excused = OF_THE_DRIVER
    elif not options["driver"]:
        excused = OF_THE_DRIVER
        if details.get("running") is False:
            return checks["daemon"]["summary"]
    else:
        status = details.get("last_tick_status")
        excused = OF_A_LOST_CARD if status == "partial" else set()
        if status not in ("ok", "partial") or (details.get("last_tick_at") or "")[:19] < options["since"]:
            return "; ".join(["no good sampling came", *map(describe, failed)])
    return "; ".join(describe(check) for check in failed if check["id"] not in excused)


def describe(check):
    cure = f" ({check['cure']})" if check["cure"] else ""
    return f"{check['id']}: {check['summary']}{cure}"


def gave_up(unit):
    """Whether waiting longer cannot help: it ended, and systemd leaves it or starts it again."""
    return unit.get("ActiveState") == "failed" or unit.get("SubState") == "auto-restart"


def wait_until_well(options):
    """(reason, unit, checks, version) as last seen: as soon as all is well, or it is hopeless, or time is up."""
    end = time.monotonic() + options["timeout_s"]
    while True:
        unit = read_unit(options)
        checks, said = read_doctor(options)
        version = read_version(options)
        reason = judge(unit, checks, said, version, options)
        if not reason or gave_up(unit) or time.monotonic() >= end:
            return reason, unit, checks, version
        time.sleep(1)


def settle(options, before):
    """Why it did not go on as the same process for settle_s; "" when it did."""
    end = time.monotonic() + options["settle_s"]
    while time.monotonic() < end:
        time.sleep(1)
        unit = read_unit(options)
        if any(unit.get(name) != before.get(name) for name in ("ActiveState", "MainPID", "NRestarts")):
            return f"it ended within {options['settle_s']} s of being well"
    return ""


def read_journal(options):
    """What an administrator would look at next."""
    status = run(["systemctl", "status", "--no-pager", "--full", "--lines=0", options["unit"]])[1]
    lines = run(["journalctl", "--unit", options["unit"], "--lines=50", "--no-pager", "--output=short-iso"])[1]
    return status + lines


def describe_board(board):
    """`last accepted 40 s ago, failing since 2026-03-02T09:00:00Z`; "" where nothing is told."""
    if not board:
        return ""
    failing = f", failing since {board['failing_since']}" if board.get("failing_since") else ""
    return describe_age(board) + failing


def describe_age(board):
    age_s = board.get("last_accepted_age_s")
    if age_s is None:
        return f"none accepted since {board['none_since']}" if board.get("none_since") else "last accepted not known"
    number, unit = next(
        (abs(age_s) / size, unit)
        for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
        if abs(age_s) >= 2 * size or size == 1
    )
    return "last accepted {:.0f} {} {}".format(number, unit, "ago" if age_s >= -1 else "ahead of the clock")


def number(text):
    return int(text) if text and text.isdigit() else None


def examine(options):
    """The whole answer, see above."""
    reason, unit, checks, version = wait_until_well(options)
    reason = reason or settle(options, unit)
    details = daemon_details(checks)
    of_cloud = checks.get("cloud", {}).get("details", {})
    worth_a_word = [check for check in checks.values() if check["status"] in ("fail", "warn")]
    return {
        "healthy": not reason,
        "reason": reason,
        "told": [f"{check['id']}: {check['summary']}" for check in worth_a_word],
        "version": version,
        "active": unit.get("ActiveState", ""),
        "main_pid": number(unit.get("MainPID")),
        "restarts": number(unit.get("NRestarts")),
        "last_tick_at": details.get("last_tick_at"),
        "last_tick_status": details.get("last_tick_status"),
        "last_tick_age_s": details.get("last_tick_age_s"),
        "paused": bool(details.get("paused_since")),
        "enrolled": of_cloud.get("enrolled"),
        "board": of_cloud.get("board"),
        "accepted": describe_board(of_cloud.get("board")),
        "journal": read_journal(options) if reason else "",
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(examine(json.loads(sys.argv[1]))) + "\n")
