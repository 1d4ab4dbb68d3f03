"""The agent's wheel: built from a checkout, or packed again from an installation, byte for byte the same each time."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path

import pytest

from gua_fleet import agent_wheel
from gua_fleet.agent_wheel import AgentWheelUnavailable, find_checkout, make_agent_wheel, repack, source_digest

RECORD = """\
gua/__init__.py,sha256={hash},{size}
gua/__pycache__/__init__.cpython-311.pyc,,
../../../bin/gua,sha256=abc,1
gua_fleet-1.2.dist-info/METADATA,,
gua_fleet-1.2.dist-info/WHEEL,,
gua_fleet-1.2.dist-info/INSTALLER,,
gua_fleet-1.2.dist-info/direct_url.json,,
gua_fleet-1.2.dist-info/RECORD,,
"""


@pytest.fixture
def installed(tmp_path: Path) -> Distribution:
    """A small installation of gua-fleet 1.2, as pip leaves it."""
    import base64
    import hashlib

    code = b'__version__ = "1.2"\n'
    site = tmp_path / "lib" / "python3" / "site-packages"
    info = site / "gua_fleet-1.2.dist-info"
    (site / "gua").mkdir(parents=True)
    info.mkdir()
    (site / "gua" / "__init__.py").write_bytes(code)
    digest = base64.urlsafe_b64encode(hashlib.sha256(code).digest()).rstrip(b"=").decode()
    (info / "RECORD").write_text(RECORD.format(hash=digest, size=len(code)))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gua-fleet\nVersion: 1.2\n")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    (info / "INSTALLER").write_text("pip\n")
    (info / "direct_url.json").write_text("{}")
    return PathDistribution(info)


def test_a_repacked_wheel_holds_the_distribution_and_nothing_of_the_installation(
    installed: Distribution, tmp_path: Path
) -> None:
    wheel = repack(installed, tmp_path / "out")
    info = "gua_fleet-1.2.dist-info"
    assert wheel.name == "gua_fleet-1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        assert sorted(archive.namelist()) == sorted(
            ["gua/__init__.py", f"{info}/METADATA", f"{info}/RECORD", f"{info}/WHEEL"]
        )


def test_repacking_twice_gives_the_same_bytes(installed: Distribution, tmp_path: Path) -> None:
    assert repack(installed, tmp_path / "a").read_bytes() == repack(installed, tmp_path / "b").read_bytes()


def test_a_repacked_wheel_can_be_installed(installed: Distribution, tmp_path: Path) -> None:
    wheel = repack(installed, tmp_path / "out")
    target = tmp_path / "target"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(target)]
    subprocess.run([*command, str(wheel)], check=True)
    assert (target / "gua" / "__init__.py").read_text() == '__version__ = "1.2"\n'


def test_code_that_was_changed_since_it_was_installed_is_refused(installed: Distribution, tmp_path: Path) -> None:
    [code] = [file for file in installed.files or () if file.name == "__init__.py"]
    Path(str(code.locate())).write_text("tampered\n")
    with pytest.raises(AgentWheelUnavailable, match="changed since gua-fleet was installed: reinstall"):
        repack(installed, tmp_path / "out")


def test_code_that_is_gone_is_named(installed: Distribution, tmp_path: Path) -> None:
    [code] = [file for file in installed.files or () if file.name == "__init__.py"]
    Path(str(code.locate())).unlink()
    with pytest.raises(AgentWheelUnavailable, match=r"gua/__init__\.py of gua-fleet: reinstall"):
        repack(installed, tmp_path / "out")


def test_a_checkout_is_known_by_its_files_and_an_installation_is_none(tmp_path: Path) -> None:
    assert find_checkout() == Path(__file__).resolve().parents[2]
    assert find_checkout(tmp_path / "lib" / "site-packages" / "gua_fleet" / "agent_wheel.py") is None


def test_a_build_that_is_cut_off_leaves_no_wheel_to_be_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, kept = tmp_path / "checkout", tmp_path / "wheels"
    checkout.mkdir()
    for name in agent_wheel._SOURCES:
        (checkout / name).write_text("")

    def cut(*arguments: str, failed: type[Exception]) -> None:
        folder = Path(arguments[arguments.index("--wheel-dir") + 1])
        folder.mkdir()
        (folder / "gua_fleet-1.2-py3-none-any.whl").write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(agent_wheel, "run_pip", cut)
    with pytest.raises(KeyboardInterrupt):
        make_agent_wheel(checkout, kept)
    assert list(kept.rglob("*.whl")) == []


def test_the_digest_of_a_checkout_follows_its_sources_and_not_their_byte_code(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "agent/gua/a.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("one")
    before = source_digest(tmp_path)
    (tmp_path / "agent" / "gua" / "__pycache__").mkdir()
    (tmp_path / "agent" / "gua" / "__pycache__" / "a.pyc").write_text("code")
    assert source_digest(tmp_path) == before
    (tmp_path / "agent" / "gua" / "a.py").write_text("two")
    assert source_digest(tmp_path) != before
