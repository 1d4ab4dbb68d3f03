"""The service's life on a real host: started, reloaded, killed, frozen, out of room, rebooted, stopped.

The tests build on each other, in order. The host is deployed as any is; its unit has only less patience, so that nobody
waits a minute for the watchdog.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.lab.deployment import Site
from tests.lab.harness import Lab
from tests.lab.host import HostFailed, LabHost

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1200)]

IMPATIENT = "[Service]\nWatchdogSec=5\nRestartSec=1s\n"
PATIENCE_S = 120.0
DATABASE = "/var/lib/gua/gua.db"


@pytest.fixture(scope="module")
def atlas(lab: Lab) -> LabHost:
    impatient = {"gua_agent_systemd_override": IMPATIENT, "gua_agent_nvml_deadline": "1s"}
    site = Site(lab, "atlas", gua_agent_settle_s=2, **impatient)
    site.play("wheelhouse.yml", "-e", '{"gua_only": ["3.9", "3.11", "3.13"]}')
    deployed = site.play("deploy.yml")
    assert (deployed.status, deployed.result("atlas")) == (0, "deployed"), deployed.output
    return lab.hosts["atlas"]


def said(host: LabHost, *command: str) -> tuple[int, str]:
    """The exit status of a command, and what it printed on both streams."""
    *lines, status = host.run("sh", "-c", '"$@" 2>&1; echo "$?"', "sh", *command).splitlines()
    return int(status), "\n".join(lines)


def status(host: LabHost) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(host.run("sh", "-c", "gua status --json || true"))
    return document


def show(host: LabHost, name: str) -> str:
    return host.run("systemctl", "show", "-P", name, "gua-agent").strip()


def journal(host: LabHost) -> str:
    """What the agent itself said since the host was booted."""
    return host.run("journalctl", "--boot", "--unit=gua-agent", "--output=cat", "_COMM=gua")


def wait_until(condition: Callable[[], bool], what: str) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, f"waited in vain for {what}"
        time.sleep(0.2)


def samples_since(host: LabHost, at: str) -> bool:
    """Whether the newest tick is later than `at`, and the daemon as it should be."""
    found = status(host)
    return found["state"] == "running" and str(found["last_tick_at"]) > at


def whole(host: LabHost) -> bool:
    """Whether its database is, by SQLite's own word."""
    check = f"import sqlite3; print(sqlite3.connect('{DATABASE}').execute('PRAGMA integrity_check').fetchone()[0])"
    return host.run("runuser", "-u", "gua", "--", "python3", "-c", check).strip() == "ok"


def test_the_service_is_ready_and_told_what_it_does_and_a_second_daemon_is_refused(atlas: LabHost) -> None:
    wait_until(lambda: status(atlas)["state"] == "running", "the first tick")
    found = status(atlas)
    assert (str(found["pid"]), found["unit"]) == (show(atlas, "MainPID"), "gua-agent.service")
    wait_until(lambda: show(atlas, "StatusText").startswith("last tick ok, 1 card"), "its word to systemd")
    code, text = said(atlas, "gua", "start")
    assert (code, text.splitlines()[-1].startswith("gua: another gua daemon (pid ")) == (1, True), text
    code, text = said(atlas, "gua", "stop")
    assert (code, text.endswith("`systemctl stop gua-agent.service`")) == (1, True), text
    assert f"INFO sampling every 1 s into {DATABASE}" in journal(atlas).splitlines()  # the journal has the time


def test_settings_are_read_again_without_a_restart(atlas: LabHost) -> None:
    before = show(atlas, "MainPID")
    atlas.run("sed", "-i", 's/^interval = .*/interval = "2s"/', "/etc/gua/agent.toml")
    atlas.run("systemctl", "reload", "gua-agent")
    wait_until(lambda: status(atlas)["interval_s"] == 2, "a tick under the new interval")
    assert (show(atlas, "MainPID"), show(atlas, "ActiveState")) == (before, "active")
    assert "settings read again: sampling every 2 s" in journal(atlas)


def test_one_that_is_killed_is_started_anew_and_misses_nothing_that_it_had_stored(atlas: LabHost) -> None:
    before, last = show(atlas, "MainPID"), status(atlas)["last_tick_at"]
    atlas.run("kill", "-9", before)
    wait_until(lambda: samples_since(atlas, last), "ticks of the next one")
    assert show(atlas, "MainPID") != before
    assert whole(atlas)


def test_one_that_is_frozen_is_ended_by_the_watchdog_and_started_anew(atlas: LabHost) -> None:
    before, last = show(atlas, "MainPID"), status(atlas)["last_tick_at"]
    assert show(atlas, "WatchdogUSec") == "31s"  # it asked for more patience: a tick may take so long
    atlas.run("kill", "-STOP", before)
    wait_until(lambda: show(atlas, "MainPID") not in (before, "0"), "the watchdog")
    wait_until(lambda: samples_since(atlas, last), "ticks of the next one")
    assert "watchdog" in atlas.run("journalctl", "--boot", "--unit=gua-agent", "--output=cat").lower()


def test_without_room_it_stays_waits_and_goes_on_by_itself(atlas: LabHost) -> None:
    atlas.run("systemctl", "stop", "gua-agent")
    atlas.run("mount", "-t", "tmpfs", "-o", "size=64k,mode=0750", "tmpfs", "/var/lib/gua")
    try:
        atlas.run("chown", "gua:gua", "/var/lib/gua")
        atlas.run("systemctl", "start", "gua-agent")
        wait_until(lambda: show(atlas, "StatusText").startswith("waiting for the database: "), "its word to systemd")
        begun = show(atlas, "MainPID")
        atlas.run("mount", "-o", "remount,size=64m", "/var/lib/gua")
        wait_until(lambda: status(atlas)["state"] == "running", "ticks where there is room")
        assert show(atlas, "MainPID") == begun
        assert "recovered: " in journal(atlas)
    finally:
        atlas.run("systemctl", "stop", "gua-agent")
        atlas.run("umount", "/var/lib/gua")
    atlas.run("systemctl", "start", "gua-agent")


def test_a_power_cut_leaves_a_pid_file_that_the_next_boot_does_not_mind(atlas: LabHost) -> None:
    wait_until(lambda: status(atlas)["state"] == "running", "ticks before the power cut")
    last = status(atlas)["last_tick_at"]
    atlas.power_off()
    assert atlas.path("/var/lib/gua/gua.pid").exists()
    atlas.boot()
    atlas.wait_running()
    wait_until(lambda: samples_since(atlas, last), "ticks after the boot")
    assert atlas.run("head", "-1", "/var/lib/gua/gua.pid").strip() == show(atlas, "MainPID")
    assert whole(atlas)


def test_a_stop_is_prompt_and_clean_and_a_restart_goes_on(atlas: LabHost) -> None:
    last = status(atlas)["last_tick_at"]
    atlas.run("systemctl", "restart", "gua-agent")
    wait_until(lambda: samples_since(atlas, last), "ticks after the restart")
    begin_s = time.monotonic()
    atlas.run("systemctl", "stop", "gua-agent")
    assert time.monotonic() - begin_s < 15  # two seconds are promised, and after twenty systemd would kill
    assert (show(atlas, "Result"), show(atlas, "ExecMainStatus")) == ("success", "0")
    code, text = said(atlas, "gua", "status")
    assert (code, text.splitlines()[-1].startswith("not running, last tick ")) == (3, True), text
    with pytest.raises(HostFailed):
        atlas.run("test", "-e", "/var/lib/gua/gua.pid")
