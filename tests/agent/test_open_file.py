"""What lies where a file of ours should is looked at again and again: nothing may be left open, nobody held up."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gua.cloud.config_file import refuse_other_file
from gua.cloud.heard import load_heard, read_board
from gua.open_file import open_at_once


def open_handles() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("name", ["cloud.json", "board.json"])
def test_a_folder_in_the_place_of_a_file_leaves_no_handle_open(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    before = open_handles()
    for _ in range(20):
        load_heard(tmp_path / "gua.db")
        read_board(tmp_path / "cloud.json", tmp_path / "gua.db", 0)
        refuse_other_file(tmp_path / name)
    assert open_handles() == before


def test_a_folder_is_an_error_and_a_pipe_is_opened_without_waiting(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        open_at_once(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with open_at_once(tmp_path / "pipe") as file:
        assert os.get_inheritable(file.fileno()) is False
    with pytest.raises(FileNotFoundError):
        open_at_once(tmp_path / "gone")
