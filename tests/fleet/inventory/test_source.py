from __future__ import annotations

from pathlib import Path

import pytest

from gua_fleet.errors import InventoryError
from gua_fleet.inventory.source import find_source


def test_find_prefers_option_then_environment_then_ansible_then_default(tmp_path: Path) -> None:
    for name in ("option.yml", "environment.yml", "inventory.yml"):
        Path(name).write_text("all:\n")
    environ = {"GUA_FLEET_HOSTS": "environment.yml"}
    assert find_source(["option.yml"], environ).words == "option.yml (--hosts)"
    assert find_source([], environ, ["inventory.yml"]).words == "environment.yml (GUA_FLEET_HOSTS)"
    assert find_source([], {}, ["inventory.yml"]).words == "inventory.yml (gua-fleet.yml)"
    Path("ansible.cfg").write_text("[defaults]\ninventory = site.ini ; ours\n")
    assert (find_source([], {}).words, find_source([], {}).arguments) == ("site.ini (ansible.cfg)", ())
    Path("ansible.cfg").unlink()
    assert find_source([], {}).words == "inventory.yml (the default)"


def test_find_nothing_names_all_ways() -> None:
    with pytest.raises(
        InventoryError,
        match=r"--hosts FILE, set GUA_FLEET_HOSTS, name it in gua-fleet\.yml, or write",
    ):
        find_source([], {})


def test_find_ansible_cfg_in_a_world_writable_directory_is_not_trusted(tmp_path: Path) -> None:
    Path("ansible.cfg").write_text("[defaults]\ninventory = evil.ini\n")
    tmp_path.chmod(0o777)
    with pytest.raises(InventoryError, match="no inventory"):
        find_source([], {})


def test_find_unreadable_ansible_cfg_is_named() -> None:
    Path("ansible.cfg").write_text("no section\n")
    with pytest.raises(InventoryError, match=r"ansible\.cfg cannot be read"):
        find_source([], {})


def test_find_empty_option_is_no_directory() -> None:
    with pytest.raises(InventoryError, match="--hosts is empty"):
        find_source([""], {})


def test_find_several_inventories_are_all_given_to_ansible(tmp_path: Path) -> None:
    Path("a.yml").write_text("all:\n")
    found = find_source(["a.yml", "b1,b2"], {})
    assert (found.arguments, found.words) == (("-i", "a.yml", "-i", "b1,b2"), "a.yml, b1,b2 (--hosts)")
    assert found.folders == (tmp_path,)
