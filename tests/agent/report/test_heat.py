"""The heat map's shades and places."""

from __future__ import annotations

from gua.report.cells import Look
from gua.report.heat import heat_legend, heat_lines
from tests.documents import states


def test_heat_lines_put_an_hour_in_its_day_and_column() -> None:
    hours = [{"weekday": 1, "hour": 2, "card_s": states(active=25, held=75)}]
    lines = heat_lines(hours, ["idle-held"], Look())
    assert len(lines) == 9
    assert lines[3] == "Tue    ▇"
    assert lines[2] == "Mon"


def test_heat_lines_rise_in_equal_steps_and_leave_the_unknown_blank() -> None:
    spent = [states(idle=1), states(held=1, idle=99), states(held=2, idle=8), states(held=1), states(unknown=1)]
    hours = [{"weekday": 0, "hour": hour, "card_s": amounts} for hour, amounts in enumerate(spent)]
    assert heat_lines(hours, ["idle-held"], Look(unicode=False))[2] == "Mon  .029"
    assert heat_lines(hours, ["idle-held"], Look())[2] == "Mon  ·▁▂█"


def test_heat_legend_names_every_mark() -> None:
    assert all(mark in heat_legend(Look()) for mark in "·▁▂▃▄▅▆▇█")
