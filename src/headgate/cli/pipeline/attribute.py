"""The command ``headgate pipeline attribute``, which names the cause of each backlog."""

from __future__ import annotations

import sys
from typing import Any, Final

import click

from headgate.base.errors import InputError
from headgate.base.input_errors import did_you_mean
from headgate.cli import terminal
from headgate.cli.pipeline.common import (
    EXIT_FOUND,
    check_needed,
    check_no_brokers,
    files_option,
    format_option,
    interruptible,
    load,
    range_options,
    scrapes_option,
    source_options,
)
from headgate.pipeline.options import AttributeOptions, SourceOptions
from headgate.pipeline.tables.attribution import BLAMES

_ANY: Final = "ANY"
_THROTTLED: Final = "THROTTLED"
_FAULTS: Final = tuple(blame for blame in BLAMES if blame != "NONE")


class _Verdict(click.Choice[str]):
    """A verdict; click would list the names in small letters."""

    def __init__(self) -> None:
        super().__init__([_ANY, _THROTTLED, *_FAULTS], case_sensitive=False)

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:  # noqa: ARG002
        names = tuple(self.choices)
        hint = did_you_mean(str(value).upper(), names) or ";"
        return f"{value!r} is no verdict{hint} {', '.join(names)} are allowed."


@click.command("attribute", short_help="Judge each subscription over a time range.")
@source_options
@scrapes_option
@files_option
@range_options
@format_option
@click.option(
    "--no-read", is_flag=True,
    help="Judge from the tables alone and ask no broker; works while stream runs.",
)  # fmt: skip
@click.option(
    "--producers", is_flag=True,
    help="Show instead what held the producers of each topic, how long, and at which limit.",
)  # fmt: skip
@click.option(
    "--fail-on", metavar="VERDICT", multiple=True,
    type=_Verdict(),
    help="End with status 3 if a subscription has this verdict; may be repeated. THROTTLED is any"
    " of the three limiters, ANY is every verdict but NONE.",
)  # fmt: skip
@click.option(
    "--fail-confidence", metavar="C", type=click.FloatRange(0, 1), default=0.5, show_default=True,
    help="Confidence that a verdict needs to count for --fail-on.",
)  # fmt: skip
def attribute_command(
    source: SourceOptions,
    since: str | None,
    until: str | None,
    format_: Any,
    no_read: bool,
    producers: bool,
    fail_on: tuple[str, ...],
    fail_confidence: float,
) -> None:
    """Read the telemetry topics and judge each subscription over a time range.

    With --producers, judge each topic: why was my producer slow?

    Example: headgate pipeline attribute --out tables --since 2h
    """
    if no_read:
        check_no_brokers("--no-read", "work")
    check_needed("fail_confidence", "--fail-on", is_given=bool(fail_on))
    if producers and fail_on:
        raise click.UsageError("--fail-on is about subscriptions, --producers about topics.")
    options = AttributeOptions(
        source, since, until, format_, terminal.width(), terminal.has_color(), not no_read,
        producers,
    )  # fmt: skip
    jobs = load("jobs")
    with interruptible():
        rows = jobs.run_attribute(options, sys.stdout, sys.stderr)
    if not fail_on:
        return
    if not rows:
        # Without telemetry there is no verdict: a script that watches must learn that it ended.
        raise InputError(
            "--fail-on: no subscription has telemetry in this range, so none is judged"
        )
    wanted = _verdicts(fail_on)
    found = [r for r in rows if r["verdict"] in wanted and r["confidence"] >= fail_confidence]
    if found:
        judged = ", ".join(sorted({row["verdict"] for row in found}))
        click.echo(f"--fail-on: {len(found):,} of {len(rows):,} judged {judged}.", err=True)
        sys.exit(EXIT_FOUND)


def _verdicts(names: tuple[str, ...]) -> set[str]:
    found: set[str] = set()
    for name in names:
        if name == _ANY:
            found.update(_FAULTS)
        elif name == _THROTTLED:
            found.update(fault for fault in _FAULTS if fault.startswith(_THROTTLED))
        else:
            found.add(name)
    return found
