"""What the commands really print, against the schemas in the package."""

import json
import os
from pathlib import Path
from typing import Any

import gua
from tests.agent.running import add_pci_card, run_json
from tests.nvml_stub import Card, Error, Instance, Process, Scene


def check(document: dict[str, Any], name: str) -> None:
    import jsonschema

    schema = json.loads((Path(gua.__file__).parent / "schemas" / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)


AWKWARD = Scene(
    cards=(
        Card("GPU-a", util=93, processes=(Process(os.getpid(), None), Process(os.getppid(), kind="graphics"))),
        Card("GPU-b", util=None, power_mw=None, rules=(Error("nvmlDeviceGetMemoryInfo", "UNKNOWN"),)),
        Card("GPU-c", rules=(Error("nvmlDeviceGetHandleByIndex", "GPU_IS_LOST"),)),
        Card("GPU-d", mig_max=7, instances=(Instance("MIG-1"),)),
    )
)


def test_documents_of_healthy_awkward_and_broken_hosts_fit(tmp_path: Path, nvml_scene: Path) -> None:
    add_pci_card(tmp_path)
    for scene in (Scene(cards=(Card("GPU-c"),)), AWKWARD, Scene(rules=(Error("nvmlInit", "DRIVER_NOT_LOADED"),))):
        scene.save(nvml_scene)
        check(run_json(tmp_path, "doctor"), "gua.doctor.1")
        check(run_json(tmp_path, "sync-once", "--push", "never"), "gua.observation.1")
