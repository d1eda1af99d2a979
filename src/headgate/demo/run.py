"""Runs ``headgate demo`` from its first line to its exit status."""

from __future__ import annotations

import logging
import math
import shutil
import tempfile
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from headgate.base.errors import HeadgateError, InputError
from headgate.demo import adaptive, adaptive_view, follow, follow_view
from headgate.demo.admin import AdminClient, limit_calls
from headgate.demo.credentials import ADMIN, PIPELINE, UNSECURED, new_credentials
from headgate.demo.findings import Finding
from headgate.demo.live import LiveView, Timeline
from headgate.demo.repair import Repair, is_drained, plan_repair
from headgate.demo.report import print_report, rows, wrong_verdicts
from headgate.demo.rule import PROMQL, rule_answer
from headgate.demo.scenes import SCENES, Scene, Subject, subjects
from headgate.demo.spans import SNAPSHOT_PERIOD_S
from headgate.demo.spark import SparkJob, SparkSpec, missing_requirement
from headgate.demo.stage import Stage

EXIT_WRONG: Final = 1
"""Exit status when a result differs from what was built."""

SECONDS: Final = 60.0
"""Default time in which the situations develop."""
SECONDS_MIN: Final = 10.0
"""A shorter run gives no settled verdict."""

_INDENT: Final = "  "
_EXPLAIN_EVERY_S: Final = 1.0
_DRAIN_S_MAX: Final = 60.0
_LAST_WINDOW_S: Final = 1.6
"""Time until the telemetry of the last second is published."""

NEXT_STAGES: Final = {
    "": "reading the last records",
    "read": "computing intervals",
    "intervals": "computing attribution and judging",
}
"""The work of the Spark job after each of its stages."""

KEPT_S: Final = 900
"""With ``--keep`` all situations last so long. After that the one with an old backlog is over, and
the backlogs of the others would fill the disk, so the clients end."""

KEEP_HINT: Final = "headgate demo --keep leaves the brokers and their pages open at the end"

SECURED: Final = (
    "--secured: everybody needs a token. Role admin may do everything, producer may produce,"
    " consumer may consume, pipeline may read the telemetry"
)

NEXT: Final = (
    "Next: headgate standalone, then headgate explain (in a checkout: ./dev serve, "
    "./dev headgate explain)"
)
"""The commands to continue with."""

SPARK_HINT: Final = (
    "headgate[spark] with Java 17 adds the pipeline: the same judgement from telemetry in tables"
)


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The options of the command line."""

    seconds: float = SECONDS
    """How long the situations develop before they are judged."""
    spark: bool = True
    """Whether the pipeline runs, where it can."""
    out: str | None = None
    """Folder of the pipeline's tables; None: a new one among the temporary files."""
    keep: bool = False
    """Whether brokers and clients go on after the last step, for people who look at the page."""
    secured: bool = False
    """Whether the brokers ask for credentials and check the rights of each role."""


Findings = dict[Subject, Finding]


class Demo:
    """One run of the demo."""

    def __init__(self, options: DemoOptions, console: Console) -> None:
        """``console`` shows all output."""
        self._options = options
        self._console = console
        self._expected: list[tuple[Subject, Scene]] = list(subjects())
        self._relative = next(each for each in self._expected if each[1].relative)
        """The limit that follows the publish rate, by the subscription that it holds."""
        self._snapshots: list[follow.Snapshot] = []
        self._pair = adaptive.neighbours(self._expected)
        self._adaptive_snapshots: list[adaptive.Snapshot] = []
        self._tables_path = ""
        self._credentials = UNSECURED

    def run(self) -> int:
        """Run all steps; returns the exit status.

        Raises:
            HeadgateError: a broker or a client process failed.
        """
        missing = missing_requirement() if self._options.spark else "--no-spark was given"
        begin_s = time.monotonic()
        with (
            tempfile.TemporaryDirectory(
                prefix="headgate-demo-", ignore_cleanup_errors=True
            ) as folder,
            ExitStack() as stack,
        ):
            kept_s = KEPT_S if self._options.keep else 0.0
            if self._options.secured:
                self._credentials = new_credentials(Path(folder, "credentials"))
            stage = stack.enter_context(
                Stage(Path(folder), SCENES, self._options.seconds, kept_s, self._credentials)
            )
            self._title(1, "Brokers and clients")
            stage.start_brokers()
            for cluster, urls in stage.urls.items():
                self._say(f"broker {cluster:<13} {urls.broker}   its page: {urls.web}/")
            if self._credentials.is_secured:
                self._say(SECURED)
            subject, scene = self._relative
            old = scene.old_backlog(self._options.seconds, kept_s)
            self._say(f"{subject.text}: {old:,} messages were there before its broker's restart")
            job = None
            if not missing:
                self._tables_path = stack.enter_context(tables_folder(self._options.out))
                job = stack.enter_context(self._start_spark(stage, Path(folder)))
            self._say("connecting producers and consumers: pulsar-client in two other processes")
            stage.connect_clients()
            problems = self._play(stage, job, missing)
            self._end(begin_s, problems)
            if self._options.keep:
                self._keep_open(stage)
        return EXIT_WRONG if problems else 0

    def _start_spark(self, stage: Stage, folder: Path) -> SparkJob:
        urls = stage.urls.values()
        spec = SparkSpec(
            tuple(u.broker for u in urls),
            tuple(u.web for u in urls),
            self._tables_path,
            token_path=self._credentials.token_path(PIPELINE),
        )
        self._say(f"Spark starts meanwhile; its tables go to {self._tables_path}")
        return SparkJob(spec, folder)

    def _play(self, stage: Stage, job: SparkJob | None, missing: str) -> list[str]:
        """Run steps 2 to 7; returns a line for each unexpected result."""
        begin_ns = time.time_ns()
        stage.start_publishing()
        before = stage.scrape()
        self._title(2, "Ten situations develop; the brokers' account (explain) shows why")
        seen = self._watch(stage, job)
        after = stage.scrape()
        width = adaptive_view.explained_width(self._console)
        explained = stage.explain_text(self._pair.slowed[0], width)
        wrongs = wrong_verdicts(self._expected, seen, "explain")
        rule = {s: rule_answer(before.get(s), after.get(s)) for s, _ in self._expected}
        if job is None:
            self._title(3, f"Tables by Spark are left out: {missing}")
            self._say(SPARK_HINT)
            self._title(4, "Whose fault: explain's judgement of the last minute")
            found = seen
        else:
            self._title(3, "The same from telemetry: Spark reads what the brokers published")
            found = self._judge(job, begin_ns)
            wrongs += wrong_verdicts(self._expected, found, "the pipeline")
            self._title(4, "Whose fault: judged from the tables over the whole run")
        print_report(self._console, rows(self._expected, found, rule))
        self._console.print(Text(PROMQL, "dim"))
        wrongs += self._show_relative_limit() + self._show_adaptive(explained)
        return wrongs + self._repair(stage)

    def _watch(self, stage: Stage, job: SparkJob | None) -> Findings:
        begin_s = time.monotonic()
        seconds = self._options.seconds
        next_s = 0.0
        with LiveView(self._console, seconds) as view:
            while True:
                elapsed_s = time.monotonic() - begin_s
                self._snapshots.append(stage.limit_snapshot(self._relative[0]))
                self._adaptive_snapshots.append(stage.adaptive_snapshot(self._pair))
                is_last = elapsed_s >= seconds
                if is_last or elapsed_s >= next_s:
                    next_s = elapsed_s - elapsed_s % _EXPLAIN_EVERY_S + _EXPLAIN_EVERY_S
                    found = stage.explain()
                    note = "" if job is None else job.poll()
                    view.show(elapsed_s, self._in_order(found), note, self._timelines())
                if is_last:
                    return found
                time.sleep(_pause_s(time.monotonic() - begin_s, SNAPSHOT_PERIOD_S))

    def _timelines(self) -> list[Timeline]:
        """The timelines of both moving limits."""
        pair, seconds = self._pair, self._options.seconds
        moving = [follow_view.line(row) for row in follow.rows(self._snapshots, seconds)]
        slowed = [
            adaptive_view.line(row, pair)
            for row in adaptive.rows(self._adaptive_snapshots, seconds)
        ]
        return [
            Timeline(follow_view.heading(*self._relative), moving),
            Timeline(adaptive_view.heading(pair), slowed),
        ]

    def _show_relative_limit(self) -> list[str]:
        """Show how the limit moved; return a line for each problem."""
        self._title(5, "A limit that moves: relative to the publish rate")
        subject, scene = self._relative
        seconds = self._options.seconds
        found = follow.rows(self._snapshots, seconds)
        follow_view.print_timeline(self._console, subject, scene, self._snapshots, found)
        return [
            f"{subject.text}: {each}" for each in follow.problems(self._snapshots, scene, seconds)
        ]

    def _show_adaptive(self, explained: str) -> list[str]:
        """Show how the quota filled and the producer was slowed; return a line for each problem."""
        self._title(6, "A quota that is never reached: adaptive publish throttling")
        pair, snapshots, seconds = self._pair, self._adaptive_snapshots, self._options.seconds
        adaptive_view.print_slowed(
            self._console,
            pair,
            adaptive.rows(snapshots, seconds),
            pair.slowed[1].quota_bytes(seconds),
            explained,
        )
        problems = adaptive.problems(snapshots, pair)
        if not problems:
            adaptive_view.print_kept(self._console, pair, snapshots)
        return problems

    def _judge(self, job: SparkJob, begin_ns: int) -> Findings:
        until_ns = time.time_ns()
        time.sleep(_LAST_WINDOW_S)
        with self._console.status(NEXT_STAGES[""]) as status:

            def tick(stage: str, progress: str) -> None:
                self._say(progress)
                if stage in NEXT_STAGES:
                    status.update(NEXT_STAGES[stage])

            found = job.judge(begin_ns, until_ns, tick)
        job.end()
        return {finding.subject: finding for finding in found}

    def _repair(self, stage: Stage) -> list[str]:
        """Raise the limit that explain names until its backlog has drained; the problems."""
        self._title(7, "Repair: raise the one limit that explain names")
        # Backlogs have grown while Spark computed.
        repair = plan_repair(self._expected, stage.explain())
        if repair is None:
            return ["explain blames no limit, so there is none to raise"]
        named = repair.named
        self._say(
            f"explain names for {named.subject.text}: {named.limit_level} limit {named.limit_text}"
            f" ({named.limit_source}); raised to {repair.new_per_s:,} msg/s:"
        )
        admin = stage.admin(repair.scene.cluster)
        for call in repair.calls:
            text = call.curl(admin.web_url, self._credentials.header_path)
            self._console.print(Text(f"  {text}", "cyan"), soft_wrap=True)
            admin.call(call)
        begin_s = time.monotonic()
        while True:
            found = {
                finding.subject: finding
                for topic in repair.scene.topic_names()
                for finding in admin.explain(topic)
            }
            elapsed_s = time.monotonic() - begin_s
            waiting = "   ".join(f"{s.text} {found[s].backlog:>6,}" for s in repair.held)
            self._say(f"{elapsed_s:4.1f} s   backlog of {waiting}")
            if is_drained(repair, found):
                self._say("drained: that limit was the cause")
                self._set_back(admin, repair)
                return []
            if elapsed_s > _DRAIN_S_MAX:
                return [f"the backlog did not drain within {_DRAIN_S_MAX:.0f} s"]
            time.sleep(_pause_s(elapsed_s, _EXPLAIN_EVERY_S))

    def _set_back(self, admin: AdminClient, repair: Repair) -> None:
        """Set the limit as it was, if people are to see all situations."""
        if self._options.keep:
            for call in limit_calls(repair.scene, repair.scene.limit_per_s):
                admin.call(call)
            self._say("--keep: the limit is set back, so that all ten situations are there again")

    def _keep_open(self, stage: Stage) -> None:
        """Say what can be seen where, and wait until somebody presses Ctrl-C."""
        self._console.print("\nOpen the page and find the cause of each:", style="bold")
        for cluster, urls in stage.urls.items():
            names = ", ".join(s.text for s, _ in self._expected if s.cluster == cluster)
            self._console.print(f"  {urls.web}/", style="cyan", markup=False, soft_wrap=True)
            self._say(f"  {names}")
        if self._credentials.is_secured:
            path = self._credentials.token_path(ADMIN)
            self._console.print(f"  Sign in with the token in {path}", markup=False, soft_wrap=True)
        self._say(
            "Ctrl-C ends the brokers and removes their data; the clients end in"
            f" {KEPT_S // 60} min by themselves"
        )
        with suppress(KeyboardInterrupt):
            self._say(self._await_end_of_clients(stage))
            while True:
                time.sleep(_EXPLAIN_EVERY_S)

    def _await_end_of_clients(self, stage: Stage) -> str:
        """Wait until it is time for the clients to end, or one fails; say why all have ended."""
        end_s = time.monotonic() + KEPT_S
        why = f"the clients have ended after {KEPT_S // 60} min, before backlogs fill the disk"
        try:
            while time.monotonic() < end_s:
                time.sleep(_EXPLAIN_EVERY_S)
                stage.check_clients()
        except HeadgateError as error:
            # A laptop that slept: people may still look at what the page has.
            why = f"clients have ended, so nothing moves any more ({error})"
        stage.end_clients()
        return f"{why}; the pages stay open until Ctrl-C"

    def _in_order(self, found: Findings) -> list[Finding]:
        return [found[subject] for subject, _ in self._expected if subject in found]

    def _title(self, number: int, text: str) -> None:
        self._console.print(f"\n{number}  {text}", style="bold")

    def _say(self, text: str) -> None:
        lines = textwrap.wrap(
            text,
            self._console.width,
            initial_indent=_INDENT,
            subsequent_indent=_INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
        self._console.print("\n".join(lines), markup=False, soft_wrap=True)

    def _end(self, begin_s: float, problems: Sequence[str]) -> None:
        self._console.print()
        for problem in problems:
            self._console.print(f"WRONG: {problem}", style="bold red", markup=False)
        verdict = "Every verdict matches the situation that was built"
        if problems:
            verdict = "Some results differ from what was built, see above"
        style = "bold red" if problems else "bold green"
        self._console.print(f"{verdict}; {time.monotonic() - begin_s:.0f} s.", style=style)
        if self._tables_path:
            text = f"The tables (Delta) stay in {self._tables_path}"
            self._console.print(text, markup=False, soft_wrap=True)
        if not problems and not self._options.keep:
            self._console.print(NEXT, markup=False, soft_wrap=True)
            self._console.print(KEEP_HINT, markup=False, soft_wrap=True)


@contextmanager
def tables_folder(path: str | None) -> Iterator[str]:
    """The absolute path of the tables' folder; a new one where none is given.

    A new folder stays unless the demo is interrupted, which leaves its tables incomplete.
    """
    if path is not None:
        yield str(Path(path).absolute())
        return
    made = tempfile.mkdtemp(prefix="headgate-demo-tables-")
    try:
        yield made
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def _pause_s(elapsed_s: float, every_s: float) -> float:
    """Until the next multiple of ``every_s``."""
    return every_s - elapsed_s % every_s


def run_demo(options: DemoOptions, console: Console) -> int:
    """Play the demo and return the exit status: 0, or 1 if a result differs from what was built.

    Raises:
        InputError: an option is not allowed.
        HeadgateError: a broker or a client process failed.
    """
    if not (math.isfinite(options.seconds) and options.seconds >= SECONDS_MIN):
        raise InputError(
            f"seconds is {options.seconds:g}; a number of at least {SECONDS_MIN:g} is allowed: a "
            "shorter run settles nothing"
        )
    logger = logging.getLogger("headgate")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        return Demo(options, console).run()
    finally:
        logger.setLevel(level)
