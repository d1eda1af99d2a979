"""``headgate demo`` from its first line to its exit status."""

from __future__ import annotations

import importlib.util
import logging
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from headgate.base.errors import InputError
from headgate.demo.findings import Finding
from headgate.demo.live import LiveView
from headgate.demo.repair import is_drained, plan_repair
from headgate.demo.report import print_report, rows, wrong
from headgate.demo.rule import PROMQL, Sample, rule_says
from headgate.demo.scenes import SCENES, Scene, Subject, subjects
from headgate.demo.spark import SparkJob, SparkSpec, what_is_missing
from headgate.demo.stage import Stage

EXIT_WRONG: Final = 1
"""Exit status when a verdict is not what its situation was built to be."""

SECONDS: Final = 60.0
"""How long the situations develop unless told otherwise."""
SECONDS_MIN: Final = 10.0
"""A shorter run settles nothing."""

_LOOK_EVERY_S: Final = 1.0
_DRAIN_S_MAX: Final = 40.0
_LAST_WINDOW_S: Final = 1.6
"""Until the telemetry of the last second is published."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What the command line says."""

    seconds: float = SECONDS
    """How long the situations develop before they are judged."""
    spark: bool = True
    """Whether the pipeline runs, where it can."""
    tables_path: str | None = None
    """Folder of the pipeline's tables; None: a new one among the temporary files."""


Findings = dict[Subject, Finding]


class Demo:
    """One run of the demo."""

    def __init__(self, options: DemoOptions, console: Console) -> None:
        """``console`` is where everything is shown."""
        self._options = options
        self._console = console
        self._meant: list[tuple[Subject, Scene]] = list(subjects())
        self._missing = "" if options.spark else "asked not to"

    def run(self) -> int:
        """Play all of it; the exit status.

        Raises:
            InputError: something that is needed is missing.
            HeadgateError: a broker or a client process failed.
        """
        if importlib.util.find_spec("pulsar") is None:
            raise InputError(
                "the demo needs the package pulsar-client: pip install 'headgate[demo]'"
            )
        if not self._missing:
            self._missing = what_is_missing()
        begin_s = time.monotonic()
        with (
            tempfile.TemporaryDirectory(
                prefix="headgate-demo-", ignore_cleanup_errors=True
            ) as folder,
            ExitStack() as stack,
        ):
            stage = stack.enter_context(Stage(Path(folder), SCENES))
            self._title(1, "Brokers and clients")
            stage.start_brokers()
            for cluster, urls in stage.urls.items():
                self._say(f"broker {cluster:<10} {urls.broker}   {urls.web}")
            job = None
            if not self._missing:
                job = stack.enter_context(self._start_spark(stage, Path(folder)))
            self._say("connecting producers and consumers: pulsar-client in two other processes")
            stage.connect_clients()
            status = self._play(stage, job)
            self._say_time(begin_s, status)
        return status

    def _start_spark(self, stage: Stage, folder: Path) -> SparkJob:
        out = self._options.tables_path or tempfile.mkdtemp(prefix="headgate-demo-tables-")
        self._tables_path = str(Path(out).absolute())
        urls = stage.urls.values()
        spec = SparkSpec(
            tuple(u.broker for u in urls), tuple(u.web for u in urls), self._tables_path
        )
        return SparkJob(spec, folder)

    def _play(self, stage: Stage, job: SparkJob | None) -> int:
        """Steps 2 to 5."""
        begin_ns = time.time_ns()
        stage.go()
        before = stage.scrape()
        self._title(2, "Seven situations develop; the brokers' own account (explain) says why")
        seen = self._watch(stage, job)
        problems = wrong(self._meant, seen, "explain")
        after = stage.scrape()
        found = seen
        if job is not None:
            found = self._judge(job, begin_ns)
            problems += wrong(self._meant, found, "the pipeline")
            job.end()
        self._report(found, before, after, from_tables=job is not None)
        drained = self._repair(stage, seen)
        for problem in problems:
            self._console.print(f"WRONG: {problem}", style="bold red")
        return EXIT_WRONG if problems or not drained else 0

    def _watch(self, stage: Stage, job: SparkJob | None) -> Findings:
        begin_s = time.monotonic()
        seconds = self._options.seconds
        with LiveView(self._console, seconds) as view:
            while True:
                elapsed_s = time.monotonic() - begin_s
                found = stage.explain()
                view.show(elapsed_s, self._in_order(found), "" if job is None else job.look())
                if elapsed_s >= seconds:
                    return found
                time.sleep(_pause_s(time.monotonic() - begin_s))

    def _judge(self, job: SparkJob, begin_ns: int) -> Findings:
        self._title(3, "The same from telemetry: Spark reads the brokers' records into tables")
        until_ns = time.time_ns()
        time.sleep(_LAST_WINDOW_S)
        with self._console.status(job.progress) if self._console.is_terminal else ExitStack():
            found = job.judge(begin_ns, until_ns, self._say)
        self._say(f"{job.progress}; {self._tables_path}")
        return {finding.subject: finding for finding in found}

    def _report(
        self,
        found: Findings,
        before: dict[Subject, Sample],
        after: dict[Subject, Sample],
        *,
        from_tables: bool,
    ) -> None:
        rule = {s: rule_says(before.get(s), after.get(s)) for s, _ in self._meant}
        title = "Whose fault: judged from the tables over the whole run"
        if not from_tables:
            title = "Whose fault: explain's judgement"
        self._title(4, title)
        print_report(self._console, rows(self._meant, found, rule))
        self._console.print(Text(PROMQL, "dim"))

    def _repair(self, stage: Stage, seen: Findings) -> bool:
        """Raise the limit that explain names; whether the backlog drained."""
        self._title(5, "Repair")
        repair = plan_repair(self._meant, seen)
        if repair is None:
            self._say("explain blames no limit, so there is none to raise")
            return False
        named = repair.named
        self._say(f"explain names for {named.subject.text}: {named.limit_level} limit"
                  f" {named.limit_text} ({named.limit_source})")  # fmt: skip
        self._say(f"raised to {repair.new_per_s:,} msg/s:")
        admin = stage.admin(repair.scene.cluster)
        for call in repair.calls:
            self._console.print(Text(f"  {call.curl(admin.web_url)}", "cyan"), soft_wrap=True)
            admin.call(call)
        return self._drain(lambda: {
            subject: finding
            for topic in repair.scene.topic_names()
            for finding in admin.explain(topic)
            for subject in (finding.subject,)
        }, repair_is_done=lambda found: is_drained(repair, found))  # fmt: skip

    def _drain(
        self,
        look: Callable[[], Findings],
        repair_is_done: Callable[[Findings], bool],
    ) -> bool:
        begin_s = time.monotonic()
        while True:
            found = look()
            elapsed_s = time.monotonic() - begin_s
            waiting = ",  ".join(f"{f.subject.text} {f.backlog:>6,}" for f in found.values())
            self._say(f"{elapsed_s:4.1f} s   {waiting}")
            if repair_is_done(found):
                self._say("drained: that limit was the cause, and nothing else")
                return True
            if elapsed_s > _DRAIN_S_MAX:
                self._console.print("WRONG: the backlog did not drain", style="bold red")
                return False
            time.sleep(_pause_s(elapsed_s))

    def _in_order(self, found: Findings) -> list[Finding]:
        return [found[subject] for subject, _ in self._meant if subject in found]

    def _title(self, number: int, text: str) -> None:
        self._console.print(f"\n{number}  {text}", style="bold")

    def _say(self, text: str) -> None:
        self._console.print(f"  {text}", markup=False)

    def _say_time(self, begin_s: float, status: int) -> None:
        verdict = "every verdict is what its situation was built to be"
        if status:
            verdict = "not everything is as it was built to be, see above"
        self._console.print(f"\n{verdict}; {time.monotonic() - begin_s:.0f} s", style="bold")
        if self._missing:
            self._say(
                f"headgate[spark] adds the pipeline ({self._missing}): the same judgement from"
                " telemetry tables, for history and many brokers"
            )
        else:
            self._say(f"The tables stay in {self._tables_path}")


def _pause_s(elapsed_s: float) -> float:
    """Until the next full second."""
    return _LOOK_EVERY_S - elapsed_s % _LOOK_EVERY_S


def run_demo(options: DemoOptions, console: Console) -> int:
    """Play the demo and return the exit status: 0, or 1 when something is not as it was built.

    Raises:
        InputError: an option is not allowed, or a package is missing.
        HeadgateError: a broker or a client process failed.
    """
    if options.seconds < SECONDS_MIN:
        raise InputError(
            f"seconds is {options.seconds:g}; at least {SECONDS_MIN:g} is allowed: a shorter run "
            "settles nothing"
        )
    logging.getLogger("headgate").setLevel(logging.ERROR)
    return Demo(options, console).run()
