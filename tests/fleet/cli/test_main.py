"""The entry of `gua-fleet`: every command is there and explains itself."""

from __future__ import annotations

import pytest

from gua import __version__
from gua.cli.main import build_parser
from gua_fleet.cli.main import COMMANDS, main
from tests.explained import assert_explained


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--help"])
    assert exit_.value.code == 0
    assert set(COMMANDS) <= set(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained_and_every_json_has_its_format(name: str) -> None:
    assert_explained(build_parser("gua-fleet", COMMANDS, name), name)


def test_version_is_that_of_the_program_that_was_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out == f"gua-fleet {__version__}\n"


def test_a_wrong_command_line_is_repeated_without_the_password_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["hosts", "--store", "postgresql://gua:se?cret@db/gua", "--nothing"])
    assert exit_.value.code == 2
    said = capsys.readouterr().err
    assert "postgresql://gua:***@db/gua --nothing" in said
    assert "cret" not in said


@pytest.mark.parametrize("name", ["top", "hosts"])
def test_an_option_that_changes_nothing_is_not_offered(name: str) -> None:
    with pytest.raises(SystemExit) as exit_:
        main([name, "--verbose"])
    assert exit_.value.code == 2
