"""What `gua-fleet hosts` shows: the inventory as understood. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gua_fleet.model import Host
from gua_fleet.render import Cell
from gua_fleet.view import Section, View

SCHEMA = "gua.fleet-hosts/1"
HOST_HEADERS = ("host", "address", "port", "user", "through", "groups", "skipped because")


def hosts_view(hosts: Sequence[Host], *, source: str, warnings: Sequence[str]) -> View:
    """Everything `gua-fleet hosts` has to say. source: the inventory that was read."""
    rows = [host_document(host) for host in hosts]
    document = {"schema": SCHEMA, "source": source, "warnings": list(warnings), "hosts": rows}
    flat = [{**row, "groups": " ".join(row["groups"]), "gua_command": " ".join(row["gua_command"])} for row in rows]
    columns = list(host_document(Host("", "")))
    return View(document, sections=[Section("", HOST_HEADERS, host_rows(hosts))], columns=columns, flat=flat)


def host_rows(hosts: Sequence[Host]) -> list[tuple[Cell, ...]]:
    """One row per host, as understood; `-` where the inventory does not say and ssh_config will decide."""
    return [
        (
            host.name,
            host.address,
            host.port,
            host.user,
            _through(host),
            ", ".join(host.groups) or None,
            host.skip_reason or (f"maintenance: {host.maintenance}" if host.maintenance else None),
        )
        for host in hosts
    ]


def host_document(host: Host) -> dict[str, Any]:
    """One host of `gua-fleet hosts --format json`."""
    names = ("name", "address", "port", "user", "connection", "jump", "proxy_command", "identity_file")
    ours = ("become", "become_user", "scheduler", "maintenance", "cards")
    return {
        **{name: getattr(host, name) for name in (*names, *ours)},
        "gua_command": list(host.gua_command),
        "groups": list(host.groups),
        "skipped": host.skip_reason,
    }


def _through(host: Host) -> str | None:
    if host.connection == "local":
        return "local"
    return host.jump or ("a proxy command" if host.proxy_command else None)
