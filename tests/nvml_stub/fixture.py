"""The fixtures that give a test the stub library, or skip it with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nvml_stub.library import StubUnavailable, build

BUILD_DIR = Path(__file__).resolve().parents[2] / ".cache" / "nvml_stub"


@pytest.fixture(scope="session")
def nvml_library() -> Path:
    """Path of the stub `libnvidia-ml.so.1`: start children with LD_LIBRARY_PATH=path.parent."""
    try:
        return build(BUILD_DIR)
    except StubUnavailable as exc:
        pytest.skip(f"the NVML stub cannot be built: {exc}")


@pytest.fixture
def nvml_scene(nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A path to save scenes at; children of this test load the stub, which answers what is saved there."""
    scene = tmp_path / "scene"
    monkeypatch.setenv("LD_LIBRARY_PATH", str(nvml_library.parent))
    monkeypatch.setenv("GUA_NVML_SCENE", str(scene))
    return scene
