"""The entry of `gua`: every command is there, errors are one line, and a controller gets them framed."""

from __future__ import annotations

import argparse
import json
import os
import sys
import types

import pytest

from gua import __version__
from gua.cli.main import COMMANDS, build_parser, main, run_command
from gua.errors import DatabaseMissing
from gua.frames import unwrap_document
from tests.explained import assert_explained

NONCE = "ab" * 16


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch):
    """A command table whose one command raises what the test asks for."""

    def table(error: BaseException) -> dict[str, tuple[str, str]]:
        def run(options: argparse.Namespace) -> int:
            raise error

        module = types.ModuleType("failing_command")
        module.configure = lambda parser: parser.add_argument("--frame")  # type: ignore[attr-defined]
        module.run = run  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "failing_command", module)
        return {"fail": ("failing_command", "fails")}

    return table


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out == f"gua {__version__}\n"


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--help"])
    assert exit_.value.code == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_complete_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main([name, "--help"])
    assert exit_.value.code == 0
    assert COMMANDS[name][1][1:] in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained_and_every_json_has_its_format(name: str) -> None:
    assert_explained(build_parser("gua", COMMANDS, name), name)


@pytest.mark.parametrize("name", ["report", "doctor", "sync-once", "demo"])
def test_json_is_short_for_format_json(name: str) -> None:
    parser = build_parser("gua", COMMANDS, name)
    assert [parser.parse_args([name, *words]).format for words in (["--json"], ["--format", "json"], [])] == [
        "json",
        "json",
        "text",
    ]


def test_an_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["reprot"])
    assert exit_.value.code == 2
    assert "reprot" in capsys.readouterr().err


def test_an_error_of_ours_is_one_line_and_its_status(failing, capsys: pytest.CaptureFixture[str]) -> None:
    table = failing(DatabaseMissing("no database at /x"))
    assert run_command("gua", table, ["fail"]) == 2
    assert capsys.readouterr() == ("", "gua: no database at /x\n")


@pytest.mark.parametrize("error", [DatabaseMissing("no database at /x"), BrokenPipeError()])
def test_a_command_run_within_a_process_leaves_no_file_open(
    failing, error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(3):
        run_command("gua", failing(error), ["fail"])
    assert len(set(os.listdir("/proc/self/fd")) - before) <= 1  # of listing it


def test_a_controller_gets_the_error_as_a_framed_document(failing, capsys: pytest.CaptureFixture[str]) -> None:
    table = failing(DatabaseMissing("no database at /x"))
    assert run_command("gua", table, ["fail", "--frame", NONCE]) == 2
    document = json.loads(unwrap_document(capsys.readouterr().out.encode(), NONCE))
    assert document == {
        "schema": "gua.error/1",
        "code": "database_missing",
        "message": "no database at /x",
        "exit_status": 2,
    }


def test_a_defect_of_ours_is_a_line_and_a_file_never_a_traceback(
    failing, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert run_command("gua", failing(ZeroDivisionError("inside")), ["fail"]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    saved = next(tmp_path.glob("gua-defect-*.txt"))
    assert str(saved) in err
    assert "ZeroDivisionError: inside" in saved.read_text()


def test_a_defect_of_ours_is_a_line_also_where_no_file_can_be_written(
    failing, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "not there"))
    assert run_command("gua", failing(ZeroDivisionError("inside")), ["fail"]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "ZeroDivisionError: inside (test_main.py:" in err
