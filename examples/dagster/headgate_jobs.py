"""Headgate's tables and alerts as Dagster jobs, which only call commands."""

import os
import shlex
import subprocess

import dagster as dg


def headgate(context: dg.OpExecutionContext, command: str, options: str = "") -> None:
    """Run a command of ``headgate pipeline``; its output is in the run's log."""
    words = ["headgate", "pipeline", command, "--out", os.environ["HEADGATE_TABLES"]]
    words += shlex.split(options)
    context.log.info(shlex.join(words))
    subprocess.run(words, check=True)


@dg.op(retry_policy=dg.RetryPolicy(max_retries=2, delay=60), out=dg.Out(dg.Nothing))
def run(context: dg.OpExecutionContext) -> None:
    """Read telemetry and bring the tables up to date."""
    headgate(context, "run", os.environ.get("HEADGATE_SOURCE", ""))


@dg.op(ins={"start": dg.In(dg.Nothing)})
def alerts(context: dg.OpExecutionContext) -> None:
    """Send what is wrong and what is over."""
    headgate(context, "alerts", os.environ["HEADGATE_ALERTS"])


@dg.op(out=dg.Out(dg.Nothing))
def report(context: dg.OpExecutionContext) -> None:
    """Write a page about the day."""
    headgate(context, "report", "--since 1d")


@dg.op(ins={"start": dg.In(dg.Nothing)})
def compact(context: dg.OpExecutionContext) -> None:
    """Drop old rows and merge small files."""
    headgate(context, "compact", "--vacuum --retain 30")


@dg.job
def headgate_tables() -> None:
    """Every five minutes: read telemetry, then send alerts."""
    alerts(run())


@dg.job
def headgate_daily() -> None:
    """Once a day: a page about the day, then old rows and small files."""
    compact(report())


# One run of each job at a time: a second one over the same folder would be refused.
@dg.schedule(job=headgate_tables, cron_schedule="*/5 * * * *")
def every_five_minutes(context: dg.ScheduleEvaluationContext):
    """Start the job, unless it still runs."""
    running = context.instance.get_runs_count(
        dg.RunsFilter(job_name="headgate_tables", statuses=[dg.DagsterRunStatus.STARTED])
    )
    return dg.SkipReason("the last run has not ended") if running else dg.RunRequest()


defs = dg.Definitions(
    jobs=[headgate_tables, headgate_daily],
    schedules=[
        every_five_minutes,
        dg.ScheduleDefinition(job=headgate_daily, cron_schedule="0 1 * * *"),
    ],
)
