"""`gua-fleet report`: asks every host for its own report over one window and shows their sum."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from datetime import tzinfo
from pathlib import Path

from gua.cli.screen import read_screen
from gua.clock import SystemClock
from gua.errors import ExitStatus, GuaError, UsageError
from gua.report.period import named_period, parse_period
from gua.report.zones import find_zone, local_zone_name
from gua_fleet.anonymous import without_names
from gua_fleet.cli.common import Answers, add_fleet_options, ask_again, ask_fleet, exit_status
from gua_fleet.cli.compare import show_compared
from gua_fleet.cli.store import add_store_option
from gua_fleet.cli.stored import ask_store, fill_in
from gua_fleet.cli.view import check_output, write_output
from gua_fleet.config import FORMATS, FleetConfig
from gua_fleet.last_seen import load_seen, save_seen, state_path
from gua_fleet.merge import Known, merge_reports
from gua_fleet.merge_rules import FleetRules, Rule, fleet_rules, other_rules, parse_rule
from gua_fleet.model import Document, HostResult
from gua_fleet.period import fleet_window, other_window
from gua_fleet.probes.report import report_probe
from gua_fleet.render_table import DEFAULT_WIDTH, SECTIONS, render_fleet
from gua_fleet.store.question import Question

# Instead of a rule: every host's own.
OWN = "own"
_PERIODS = {
    "last-week": "the whole week before this one, Monday to Sunday",
    "last-month": "the whole calendar month before this one",
}
HEATS = ("active", "idle-held", "truly-idle")


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of `gua-fleet report`. Those whose default is None are filled in from the settings."""
    window = parser.add_argument_group("the window")
    begin = window.add_mutually_exclusive_group()
    begin.add_argument("--since", metavar="WHEN", help="begin: a duration back from the end, or a time (default 7d)")
    for name, meaning in _PERIODS.items():
        begin.add_argument(f"--{name}", dest="period", action="store_const", const=name, help=meaning)
    window.add_argument("--until", metavar="WHEN", help="end: a duration ago or a time (default now)")
    window.add_argument(
        "--tz", metavar="ZONE", help="time zone, such as Europe/Berlin or UTC (default: this machine's)"
    )
    window.add_argument(
        "--rules",
        metavar="RULE",
        help="judge by this rule, such as active=10,held=100; hosts that used another are asked again; "
        f"`{OWN}`: every host by its own (default: the rule most hosts use)",
    )
    window.add_argument(
        "--compare",
        metavar="WINDOW",
        help="against another window: `last week`, yesterday, a duration (7d: this window, 7 days earlier), or "
        "SINCE..UNTIL: GPU-hours reclaimed and lost",
    )
    _add_view_options(parser)
    add_fleet_options(parser)
    source = parser.add_argument_group("where it is from")
    source.add_argument(
        "--from",
        dest="source",
        choices=("live", "store"),
        help="live: only what the hosts answer now; store: only the history that was pulled, nobody is asked (default: "
        "live, and for hosts that do not answer the store, marked with its age)",
    )
    add_store_option(source)


def _add_view_options(parser: argparse.ArgumentParser) -> None:
    view = parser.add_argument_group("how it is shown")
    view.add_argument("--format", choices=FORMATS, help="how it is written (default table)")
    view.add_argument("--json", dest="format", action="store_const", const="json", help="short for --format json")
    view.add_argument(
        "--by", type=_sections, default=(), metavar="LIST", help=f"only these sections, of {','.join(SECTIONS)}"
    )
    view.add_argument(
        "--heat", choices=HEATS, default="idle-held", help="the state in the hours of the week (default idle-held)"
    )
    view.add_argument(
        "--no-names",
        dest="names",
        action="store_const",
        const=False,
        help="no names of people, processes or holds: fit to be shown to anyone",
    )
    view.add_argument(
        "--width", type=int, metavar="N", help="columns of the tables, at least 60 (default: the terminal's)"
    )
    view.add_argument("-o", "--output", type=Path, metavar="FILE", help="write there instead of to standard output")
    view.add_argument(
        "--mail-to", action="append", default=[], metavar="ADDRESS", help="To of --format mail, for `sendmail -t`"
    )
    view.add_argument("--mail-from", metavar="ADDRESS", help="From of --format mail")


def run(options: argparse.Namespace) -> int:
    """Ask, merge, show. Returns 0 when all answered, 1 when some failed, 3 when nobody answered."""
    tz = options.tz or local_zone_name()
    zone = find_zone(tz)
    if zone is None:
        raise UsageError(f"--tz {tz}: this machine does not know that zone; write one such as Europe/Berlin or UTC")
    _check_mail(options)
    check_output(options.output)
    asking = Asking(options, None if options.rules in (None, OWN) else parse_rule(options.rules), zone, tz)
    now_ms = SystemClock().now_ms()
    window = asked_window(options, now_ms, zone)
    other = None if options.compare is None else other_window(options.compare, window, now_ms=now_ms, zone=zone)
    answers, document = asking.report(window)
    if other is None:
        _show(without_names(document) if options.names is False else document, options)
        return int(_status(answers, options))
    others, before = asking.report(other, answers)
    show_compared(document, before, options)
    return max(int(_status(answers, options)), int(_status(others, options)))


@dataclass(frozen=True)
class Asking:
    """How the fleet is asked for a window. rule: that all states must be judged by; None: as `Known` has it."""

    options: argparse.Namespace
    rule: Rule | None
    zone: tzinfo
    tz: str

    def report(self, window: tuple[int, int], before: Answers | None = None) -> tuple[Answers, Document]:
        """The answers, and the document merged from them. before: of another window, with the inventory in it."""
        options, (since_ms, until_ms) = self.options, window
        holds = options.format == "json" and options.compare is None
        question = Question(since_ms, until_ms, SystemClock().now_ms(), self.zone, self.tz, holds)
        if options.source == "store":
            answers = ask_store(options, question, before)
        else:
            answers = ask_hosts(options, window, self.tz, self.rule, before)
            _remember(answers)
            if options.source is None:
                answers = fill_in(options, answers, question)
        known, span = _known(options, answers, self.rule), {"since_ms": since_ms, "until_ms": until_ms}
        now_ms = SystemClock().now_ms()
        return answers, merge_reports(answers.results, **span, tz=self.tz, generated_at_ms=now_ms, known=known)


def _status(answers: Answers, options: argparse.Namespace) -> ExitStatus:
    """Where only the store was read, somebody must be in it."""
    if options.source == "store" and not any(result.stored for result in answers.results):
        return ExitStatus.NOBODY_ANSWERED
    return exit_status(answers.results, options.allow_missing)


def asked_window(options: argparse.Namespace, now_ms: int, zone: tzinfo) -> tuple[int, int]:
    """The window that the options say, as every host is asked for it. Raises UsageError."""
    if options.period is None:
        return fleet_window(*parse_period(options.since, options.until, now_ms=now_ms, zone=zone), now_ms)
    if options.until:
        raise UsageError(f"--{options.period} is a whole window: leave out --until")
    return fleet_window(*named_period(options.period, now_ms=now_ms, zone=zone), now_ms)


def ask_hosts(
    options: argparse.Namespace,
    window: tuple[int, int],
    tz: str,
    asked: Rule | None,
    before: Answers | None = None,
) -> Answers:
    """Every host's report; those that judged by another rule than the fleet's are asked once more, by that rule.

    before: an earlier sweep, whose hosts are asked again without reading the inventory anew.
    """
    since_ms, until_ms = window
    first = report_probe(since_ms=since_ms, until_ms=until_ms, tz=tz)
    if before is None:
        answers = ask_fleet(options, first)
    else:
        names = {result.host.name for result in before.results}
        answers = replace(before, results=ask_again(options, before, names, first))
    if options.rules == OWN:
        return answers
    rules = fleet_rules(answers.results, asked)
    others = {result.host.name for result in other_rules(answers.results, rules)}
    if rules.rule is None or not others:
        return answers
    sys.stderr.write(f"report: {len(others)} of {len(answers.results)} hosts judge by another rule: asked again\n")
    probe = report_probe(since_ms=since_ms, until_ms=until_ms, tz=tz, rule=rules.rule)
    again = {result.host.name: result for result in ask_again(options, answers, others, probe)}
    results = [_better(result, again.get(result.host.name), rules) for result in answers.results]
    return replace(answers, results=tuple(results))


def _better(first: HostResult, second: HostResult | None, rules: FleetRules) -> HostResult:
    """The second answer where it is by the rules; else the first, with the reason why there is no second."""
    if second is None:
        return first
    if second.document is not None and rules.judged(second.document):
        return second
    return replace(first, detail=second.detail or "its agent does not judge by other rules: upgrade it")


def _known(options: argparse.Namespace, answers: Answers, rule: Rule | None) -> Known:
    config: FleetConfig = options.config
    seen = load_seen(state_path(), answers.inventory.hosts)
    own_rules = options.rules == OWN
    return Known(people=config.users, excuses=config.excuses, rule=rule, own_rules=own_rules, seen=seen)


def _remember(answers: Answers) -> None:
    try:
        save_seen(state_path(), answers.results)
    except GuaError as exc:
        sys.stderr.write(f"report: {exc}\n")


def _check_mail(options: argparse.Namespace) -> None:
    if options.format != "mail":
        return
    from gua_fleet.render_mail import check_addresses

    if options.compare is not None:
        raise UsageError("--compare has no mail: choose another --format, or leave it out")
    if not options.mail_to:
        raise UsageError("--format mail needs --mail-to ADDRESS")
    check_addresses(options.mail_to, options.mail_from)


def _show(document: Document, options: argparse.Namespace) -> None:
    if options.output is None and options.format == "table":
        screen = read_screen(sys.stdout, pipe_columns=DEFAULT_WIDTH)
        width = options.width or min(screen.width, DEFAULT_WIDTH)
        look = {"unicode": screen.unicode, "colour": screen.colour}
        sys.stdout.write(render_fleet(document, width=width, by=options.by, heat=options.heat, **look))
        return
    content = rendered(document, options)
    if options.output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        return
    write_output(options.output, content)


def rendered(document: Document, options: argparse.Namespace) -> bytes:
    """The document in the form the options choose, for a file or another program."""
    by, heat = options.by, options.heat
    if options.format == "table":
        return render_fleet(document, width=options.width or DEFAULT_WIDTH, by=by, heat=heat).encode()
    if options.format == "md":
        from gua_fleet.render_md import render_md  # each form only where it is asked for

        return render_md(document, by).encode()
    if options.format == "csv":
        from gua_fleet.render_csv import render_csv

        return render_csv(document, by).encode()
    if options.format == "html":
        from gua_fleet.render_html import render_html

        return render_html(document, by=by, heat=heat).encode()
    if options.format == "mail":
        from gua_fleet.render_mail import render_mail

        return render_mail(document, to=options.mail_to, sender=options.mail_from, by=by, heat=heat)
    from gua_fleet.render_json import render_json

    return render_json(document).encode()


def _sections(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no section: {', '.join(unknown)!r} (choose from {', '.join(SECTIONS)})")
    return names
