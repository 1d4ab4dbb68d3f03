"""Versions of the loaded module and of the library that would be loaded, from files of other hosts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Optional

import pytest

from gua.driver_files import DriverFiles, read_driver_files, read_library_version

MODULE = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder@U16)\n"


def install(folder: Path, version: str) -> Path:
    """What a package of that version leaves: the library by its version, and the name that programs ask for."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"libnvidia-ml.so.{version}").touch()
    link = folder / "libnvidia-ml.so.1"
    link.unlink(missing_ok=True)
    link.symlink_to(f"libnvidia-ml.so.{version}")
    return link


def cache(tmp_path: Path, *paths: Path) -> Path:
    strings = [part for path in paths for part in (path.name, str(path))]
    file = tmp_path / "ld.so.cache"
    file.write_bytes(
        b"glibc-ld.so.cache1.1\1\0\0\0" + b"\0".join(map(str.encode, ["libm.so.6", *strings, "x"])) + b"\0"
    )
    return file


def test_an_upgraded_library_beneath_a_loaded_module_differs(tmp_path: Path) -> None:
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text(MODULE)
    loader = cache(tmp_path, install(tmp_path / "lib", "570.86.15"))
    files = read_driver_files(tmp_path / "proc", {}, loader)
    assert (files, files.differ) == (DriverFiles("570.86.15", "570.86.15"), False)
    install(tmp_path / "lib", "580.65.06")
    files = read_driver_files(tmp_path / "proc", {}, loader)
    assert (files, files.differ) == (DriverFiles("570.86.15", "580.65.06"), True)
    assert str(files) == "kernel module 570.86.15, library 580.65.06"


@pytest.mark.parametrize(("module", "library"), [(None, "580.65.06"), ("570.86.15", None), (None, None)])
def test_what_is_not_known_does_not_differ(module: object, library: object) -> None:
    assert not DriverFiles(module, library).differ  # type: ignore[arg-type]


def test_the_environment_goes_before_the_cache_and_what_is_gone_is_passed_over(tmp_path: Path) -> None:
    gone, second = tmp_path / "gone/libnvidia-ml.so.1", install(tmp_path / "second", "570.86.15")
    own = install(tmp_path / "own", "580.1")
    loader = cache(tmp_path, gone, second)
    assert read_library_version({}, loader) == "570.86.15"
    assert read_library_version({"LD_LIBRARY_PATH": f":/nowhere:{own.parent}"}, loader) == "580.1"


@pytest.mark.parametrize(("other", "version"), [("570.86.15", "570.86.15"), ("535.129.03", None)])
@pytest.mark.parametrize("first", [True, False])
def test_several_libraries_in_the_cache_tell_a_version_where_they_agree(
    tmp_path: Path, other: str, version: Optional[str], *, first: bool
) -> None:
    """Those of two architectures, or of an installation before: the order of the paths says nothing."""
    paths = [install(tmp_path / "lib64", "570.86.15"), install(tmp_path / "lib32", other)]
    assert read_library_version({}, cache(tmp_path, *(paths if first else reversed(paths)))) == version


@pytest.mark.skipif(shutil.which("ldconfig", path="/sbin:/usr/sbin:/usr/bin") is None, reason="no ldconfig")
def test_a_cache_of_the_real_loader_is_understood(tmp_path: Path, nvml_library: Path) -> None:
    def version_by(*folders: str) -> Optional[str]:
        (tmp_path / "conf").write_text("".join(f"{tmp_path}/{folder}\n" for folder in folders))
        made = ["ldconfig", "-X", "-C", tmp_path / "cache", "-f", tmp_path / "conf"]
        subprocess.run(made, check=True, capture_output=True, env={"PATH": "/sbin:/usr/sbin:/usr/bin"})
        return read_library_version({}, tmp_path / "cache")

    for folder, version in (("a", "570.86.15"), ("b", "580.65.06")):
        library = install(tmp_path / folder, version).resolve()
        library.write_bytes(nvml_library.read_bytes())
    assert (version_by("a"), version_by("b")) == ("570.86.15", "580.65.06")
    assert (version_by("a", "b"), version_by("b", "a")) == (None, None)


def test_a_library_without_a_version_in_its_name_tells_none(tmp_path: Path) -> None:
    plain = tmp_path / "libnvidia-ml.so.1"
    plain.touch()
    assert read_library_version({}, cache(tmp_path, plain)) is None
    assert read_library_version({}, tmp_path / "no cache") is None
