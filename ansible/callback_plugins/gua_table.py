"""Ends every run of our playbooks with a table: host, old, new, result, reason; who did not answer stands apart.

A play cannot print it: the one that would is not run any more when a canary has failed. What goes into it the role
says with set_stats ({"gua": {"old", "new", "result", "reason"}} per host, each optional).
"""

from __future__ import annotations

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
    name: gua_table
    type: aggregate
    short_description: a table of what became of each host
    description:
      - Ends a run with one line for each host, those that did not answer apart.
"""

HEADERS = ("host", "old", "new", "result", "reason")
LONGEST_REASON = 300
# Results of hosts that failed, when they tell more than that.
SAYING_MORE = ("rolled back", "not well")
# Of what a program refused or could not do: its own last words say why.
SAYING_NOTHING = ("non-zero return code", "failed to validate")


def first_line(text):
    """The first line of a message that says something, cut where it gets too long for a table."""
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    line = lines[0] if lines else ""
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 3] + "..."


def to_row(host, told, failure):
    """One host's line. told: what the role said. failure: why the host failed, None where it did not."""
    result, reason = told.get("result"), told.get("reason") or ""
    if failure is not None:
        result = result if result in SAYING_MORE else "failed"
        reason = failure or reason
    elif result is None:
        result, reason = "not touched", "the run ended before it got here"
    said = first_line(reason)
    old, new = (str(told.get(name) or "-") for name in ("old", "new"))
    return (host, old, new, result, said.removeprefix(f"{host}: "))


def to_table(rows):
    """Lines of a table with headers; the last column runs as long as it is."""
    grid = [HEADERS, *rows]
    widths = [max(len(row[column]) for row in grid) for column in range(len(HEADERS) - 1)]
    return ["  ".join([*map(str.ljust, row, widths), row[-1]]).rstrip() for row in grid]


class CallbackModule(CallbackBase):
    """Listens for failures, and prints when all is over."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "gua_table"

    def __init__(self):
        super().__init__()
        self._failures = {}
        self._silent = {}

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._failures[result._host.get_name()] = first_line(message_of(result._result))

    def v2_runner_on_unreachable(self, result):
        self._silent[result._host.get_name()] = first_line(message_of(result._result))

    def v2_playbook_on_stats(self, stats):
        told = {host: data["gua"] for host, data in stats.custom.items() if isinstance(data.get("gua"), dict)}
        failed = {host: self._failures.get(host, "") for host in stats.failures}
        silent = {host: self._silent.get(host, "") for host in stats.dark}
        hosts = sorted((set(told) | set(failed)) - set(silent))
        lines = to_table([to_row(host, told.get(host, {}), failed.get(host)) for host in hosts]) if hosts else []
        lines += [f"unreachable: {host}  {reason}".rstrip() for host, reason in sorted(silent.items())]
        if lines:
            self._display.banner("HOSTS")
            for line in lines:
                self._display.display(line)


def message_of(result):
    """The most telling text of a failed task's result; of a loop, of the first item that failed.

    Of what a program said it is the last line: of Python the error, of a shell what stopped it.
    """
    failed = [item for item in result.get("results", ()) if isinstance(item, dict) and item.get("failed")]
    if failed:
        return message_of(failed[0])
    for name in ("msg", "stderr", "stdout"):
        if result.get(name):
            text = str(result[name])
            # ansible-core 2.21 makes a sentence of it
            if name == "msg" and any(words in text for words in SAYING_NOTHING) and result.get("stderr"):
                continue
            return text if name == "msg" else text.rstrip().rpartition("\n")[2]
    return ""
