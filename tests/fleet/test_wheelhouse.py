"""Wheelhouses: named for what is in them, believed only while their manifest holds."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gua_fleet import wheelhouse
from gua_fleet.protocol import READS
from gua_fleet.wheelhouse import WheelhouseUnavailable, is_intact, lock_of, main, make_wheelhouse, release_name


def make_wheel(path: Path, files: dict[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)  # the same bytes whenever it is made
    return path


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return make_wheel(tmp_path / "gua_fleet-1.2-py3-none-any.whl", {"gua/a.py": "a", "gua_fleet/b.py": "b"})


def pairwise(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    return zip(words, words[1:], strict=False)


def fetch_pip(*arguments: str, failed: type[Exception]) -> None:
    """Stands in for `pip download`: leaves one wheel, of pip."""
    make_wheel(Path(arguments[arguments.index("--dest") + 1]) / "pip-26.0-py3-none-any.whl", {"pip": "p"})


def test_a_release_is_named_for_version_python_and_agent_code(wheel: Path, tmp_path: Path) -> None:
    lock = lock_of("3.11")
    name = release_name("3.11", wheel, lock)
    assert name.startswith("1.2-py311-")
    assert release_name("3.11", make_wheel(tmp_path / "x" / wheel.name, {"gua/a.py": "other"}), lock) != name
    controller_only = make_wheel(tmp_path / "y" / wheel.name, {"gua/a.py": "a", "gua_fleet/b.py": "other"})
    assert release_name("3.11", controller_only, lock) == name


def test_the_controllers_release_is_named_for_the_machine_and_all_of_the_code(wheel: Path, tmp_path: Path) -> None:
    lock = lock_of("3.11", "x86_64")
    name = release_name("3.11", wheel, lock, "x86_64")
    assert name.startswith("1.2-py311-x86_64-")
    other = make_wheel(tmp_path / "y" / wheel.name, {"gua/a.py": "a", "gua_fleet/b.py": "other"})
    assert release_name("3.11", other, lock, "x86_64") != name
    assert name != release_name("3.11", wheel, lock, "aarch64")


def test_the_controllers_house_asks_for_wheels_that_fit_its_machine(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    def fetch(*arguments: str, failed: type[Exception]) -> None:
        asked.append(arguments)
        fetch_pip(*arguments, failed=failed)

    monkeypatch.setattr(wheelhouse, "run_pip", fetch)
    make_wheelhouse("3.12", wheel, tmp_path / "cache", "aarch64")
    [words] = asked
    platforms = {value for word, value in pairwise(words) if word == "--platform"}
    assert {"manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"} <= platforms
    assert not [platform for platform in platforms if platform.startswith("manylinux_2_29") or "x86" in platform]
    assert {value for word, value in pairwise(words) if word == "--abi"} == {"cp312", "abi3", "none"}
    assert words[-1].endswith("fleet-py312.txt")


def test_a_machine_without_wheels_and_a_python_too_old_for_the_controller_are_refused() -> None:
    with pytest.raises(WheelhouseUnavailable, match="type riscv64: it installs on x86_64, aarch64"):
        lock_of("3.11", "riscv64")
    with pytest.raises(WheelhouseUnavailable, match=r"Python 3\.9: the controller installs on py310, .*py313"):
        lock_of("3.9", "x86_64")


def test_a_python_line_without_lock_is_refused_with_those_that_have_one() -> None:
    with pytest.raises(WheelhouseUnavailable, match=r"no lock file for Python 3\.8.*py39, py310, .*py313"):
        lock_of("3.8")


def test_a_house_is_made_once_and_again_when_a_file_in_it_changed(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheelhouse, "run_pip", fetch_pip)
    made = make_wheelhouse("3.11", wheel, tmp_path / "cache")
    house = tmp_path / "cache" / "houses" / made["release"]
    with tarfile.open(made["archive"]) as tar:
        assert set(tar.getnames()) == {wheel.name, "pip-26.0-py3-none-any.whl", "requirements.txt", "MANIFEST.json"}
    assert made["pip"] == "pip-26.0-py3-none-any.whl"
    (house / made["pip"]).write_text("torn")
    assert not is_intact(house)
    make_wheelhouse("3.11", wheel, tmp_path / "cache")
    assert is_intact(house)
    monkeypatch.setattr(wheelhouse, "run_pip", lambda *_, **__: pytest.fail("an intact house needs no index"))
    assert make_wheelhouse("3.11", wheel, tmp_path / "cache") == made
    (house / "MANIFEST.json").write_text("[]")
    assert not is_intact(house)


def test_two_controllers_make_the_same_archive_and_tell_its_hash(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = make_wheel(tmp_path / "pip-26.0-py3-none-any.whl", {"pip": "p"})

    def fetch(*arguments: str, failed: type[Exception]) -> None:
        shutil.copy(pip, arguments[arguments.index("--dest") + 1])

    monkeypatch.setattr(wheelhouse, "run_pip", fetch)
    first, second = (make_wheelhouse("3.11", wheel, tmp_path / name) for name in ("first", "second"))
    for path in Path(second["archive"]).parent.rglob("*.whl"):
        os.utime(path, (1, 1))
        path.chmod(0o600)
    second = make_wheelhouse("3.11", wheel, tmp_path / "second")
    content = Path(second["archive"]).read_bytes()
    assert content == Path(first["archive"]).read_bytes()
    assert first["sha256"] == second["sha256"] == hashlib.sha256(content).hexdigest()


def test_an_archive_that_was_cut_or_changed_is_packed_again(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wheelhouse, "run_pip", fetch_pip)
    archive = Path(make_wheelhouse("3.11", wheel, tmp_path / "cache")["archive"])
    assert "newly made" in capsys.readouterr().err
    archive.write_bytes(archive.read_bytes()[:100])
    make_wheelhouse("3.11", wheel, tmp_path / "cache")
    with tarfile.open(archive) as tar:
        assert wheel.name in tar.getnames()
    assert capsys.readouterr().err == ""


def test_the_cache_is_ours_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wheel: Path
) -> None:
    monkeypatch.setattr(wheelhouse, "run_pip", fetch_pip)
    monkeypatch.setattr(wheelhouse, "make_agent_wheel", lambda *_: wheel)
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    assert main(["--python", "3.11", "--cache", str(cache)]) == 0
    assert cache.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(wheelhouse.os, "geteuid", lambda: cache.stat().st_uid + 1)
    capsys.readouterr()
    assert main(["--python", "3.11", "--cache", str(cache)]) == 1
    assert capsys.readouterr().err.startswith(f"wheelhouse: {cache} belongs to another user: ")


def test_a_pinned_wheel_whose_agent_this_controller_cannot_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wheelhouse, "run_pip", fetch_pip)
    names = [f"gua/schemas/{one.replace('/', '.')}.schema.json" for one in READS]
    newer = [name.replace("report.1", "report.2") for name in names]
    for version, brings, status in (("1.2", names, 0), ("2.0", newer, 1), ("0.1", [], 1)):
        wheel = make_wheel(tmp_path / f"gua_fleet-{version}-py3-none-any.whl", dict.fromkeys(brings, "{}"))
        assert main(["--python", "3.11", "--cache", str(tmp_path / "cache"), "--wheel", str(wheel)]) == status
    _, newer_said, none_said = capsys.readouterr().err.splitlines()
    assert newer_said.startswith("wheelhouse: gua_fleet-2.0-py3-none-any.whl: agent 2.0 writes gua.report/2; this gua")
    assert newer_said.endswith("reads gua.report/1: deploy it with the gua-fleet of its own version")
    assert "agent 0.1 writes no gua.doctor/1, " in none_said


def _torn(whole: bytes) -> Iterator[bytes]:
    """The same archive broken in every way that its library tells in another way."""
    entry, start = whole.index(b"PK\x01\x02"), whole.index(b"gua/schemas")
    yield b"torn"
    yield whole[: len(whole) // 2]
    yield whole[:start] + b"x" + whole[start + 1 :]  # a name that differs from its entry's
    for at, value in ((6, 99), (8, 1), (10, 99)):  # made by a later zip, encrypted, packed in an unknown way
        yield whole[: entry + at] + bytes([value]) + whole[entry + at + 1 :]
    named = whole.index(b"gua/", entry)
    yield whole[: entry + 9] + b"\x08" + whole[entry + 10 : named] + b"\xff" + whole[named + 1 :]  # no UTF-8


@pytest.mark.parametrize("more", [[], ["--fleet", "x86_64"]])
def test_a_pinned_wheel_that_is_torn_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    wheel = make_wheel(
        tmp_path / "gua_fleet-3.0-py3-none-any.whl", {f"gua/schemas/{one}.schema.json": "{}" for one in READS}
    )
    for torn in _torn(wheel.read_bytes()):
        wheel.write_bytes(torn)
        assert main(["--python", "3.11", "--cache", str(tmp_path / "cache"), "--wheel", str(wheel), *more]) == 1
        assert capsys.readouterr().err == f"wheelhouse: {wheel} is no wheel: name another with gua_wheel\n"


def test_the_requirements_name_the_agents_own_wheel_with_its_hash(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheelhouse, "run_pip", fetch_pip)
    made = make_wheelhouse("3.9", wheel, tmp_path / "cache")
    house = tmp_path / "cache" / "houses" / made["release"]
    hashes = json.loads((house / "MANIFEST.json").read_text())["files"]
    assert f"gua-fleet==1.2 --hash=sha256:{hashes[wheel.name]}" in (house / "requirements.txt").read_text()


def test_what_cannot_be_made_is_one_line_and_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wheelhouse, "make_agent_wheel", lambda *_: Path("gua_fleet-1.2-py3-none-any.whl"))
    assert main(["--python", "2.7", "--cache", str(tmp_path / "cache")]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("wheelhouse: no lock file for Python 2.7")
    assert printed.err.count("\n") == 1
