from __future__ import annotations

import io

from gua_fleet.model import Host, HostResult, Outcome
from gua_fleet.progress import host_line, summary_line, watched
from gua_fleet.ssh.sweep import Standing

RESULT = HostResult(Host("gpu07", "gpu07"), Outcome.AGENT_MISSING, "no agent at /opt", elapsed_s=1.24)
STANDING = Standing(12, 2, 40, (("gpu01", 14.2), ("gpu02", 1.0)), RESULT)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_summary_line_names_the_slow_ones_only() -> None:
    assert summary_line(STANDING) == "12 of 40 hosts, 2 failed, 2 running, slowest gpu01 14 s"


def test_host_line_says_outcome_reason_and_time() -> None:
    assert host_line(STANDING) == "12/40 gpu07: agent-missing (no agent at /opt), 1.2 s"


def test_watched_says_nothing_where_nobody_watches() -> None:
    stream = io.StringIO()
    with watched(stream) as progress:
        assert progress is None
    assert stream.getvalue() == ""


def test_watched_verbose_is_plain_lines_even_on_a_terminal() -> None:
    stream = Terminal()
    with watched(stream, each=True) as progress:
        assert progress is not None
        progress(STANDING)
    assert stream.getvalue() == host_line(STANDING) + "\n"


def test_watched_on_a_terminal_is_a_line_that_is_gone_in_the_end() -> None:
    stream = Terminal()
    with watched(stream) as progress:
        assert progress is not None
        progress(STANDING)
    assert "12/40 gpu07" not in stream.getvalue()
    assert not stream.getvalue().endswith("hosts\n")
