"""`gua card` in a process of its own, on the history that the stub's cards made."""

from pathlib import Path

from tests.agent.running import run_gua, run_json
from tests.nvml_stub import Card, Scene


def test_a_card_that_is_gone_is_listed_retired_and_back_when_it_returns(tmp_path: Path, nvml_scene: Path) -> None:
    both = Scene(cards=(Card("GPU-aaaa"), Card("GPU-bbbb")))
    both.save(nvml_scene)
    assert run_gua(tmp_path, "sync-once", "--push", "never").returncode == 0
    refused = run_gua(tmp_path, "card", "retire", "GPU-b")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "GPU-bbbb answers now" in refused.stderr
    Scene(cards=(Card("GPU-aaaa"),)).save(nvml_scene)
    run_gua(tmp_path, "sync-once", "--push", "never")
    states = {card["uuid"]: card["reason"] for card in run_json(tmp_path, "card", "list")["cards"]}
    assert states == {"GPU-aaaa": None, "GPU-bbbb": "card_missing"}
    done = run_gua(tmp_path, "card", "retire", "GPU-b")
    assert (done.returncode, done.stdout.split(":")[0]) == (0, "GPU-bbbb is retired"), done.stderr
    assert "retired 2" in run_gua(tmp_path, "card", "list").stdout
    assert run_gua(tmp_path, "card", "retire", "GPU-b").returncode == 2  # already
    run_gua(tmp_path, "sync-once", "--push", "never")
    assert "missing" not in run_gua(tmp_path, "card", "list").stdout  # retired, so no longer expected
    both.save(nvml_scene)
    run_gua(tmp_path, "sync-once", "--push", "never")
    assert "retired" not in run_gua(tmp_path, "card", "list").stdout


def test_force_retires_a_card_that_answers(tmp_path: Path, nvml_scene: Path) -> None:
    Scene(cards=(Card("GPU-aaaa"),)).save(nvml_scene)
    run_gua(tmp_path, "sync-once", "--push", "never")
    assert run_gua(tmp_path, "card", "retire", "GPU-a", "--force").returncode == 0


def test_without_a_database_it_says_what_to_run(tmp_path: Path) -> None:
    for words in (("list",), ("retire", "GPU-a")):
        done = run_gua(tmp_path, "card", *words)
        assert (done.returncode, done.stdout, "gua daemon" in done.stderr) == (2, "", True), done.stderr
