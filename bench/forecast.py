"""What the forecast of quotas costs and is worth: windows a second, and how often its band holds.

Both without Spark: the kernels over generated backlogs, one core.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import pyarrow as pa

from bench.level_series import AGE_FAMILIES, FAMILIES, Levels, family
from bench.report import Table
from headgate.base.units import NS_PER_MINUTE, S_PER_HOUR, S_PER_MINUTE
from headgate.flow.quota.backlog_quota import Approach
from headgate.pipeline.kernels.breach import WINDOW_MINUTES, band, breach
from headgate.pipeline.kernels.forecast_score import Score, score_table
from headgate.pipeline.kernels.quota_forecast import FORECAST_COLUMNS
from headgate.pipeline.kernels.theil_sen import slope_quantiles
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.tables.intervals import INTERVALS

WINDOWS = 8_192
WINDOWS_PER_S_MIN = 12_300.0
LIMIT_BYTES = 1 << 40
LIMIT_NS = 60 * MINUTE_NS
START_NS = 1_763_719_200_000_000_000
"""A full hour."""


def minutes_table(series: Levels, evicts: bool = False, is_age: bool = False) -> pa.Table:
    """Topics with one quota whose backlogs, or ages, are some series, as the kernels get them.

    With ``evicts`` a fall by more than 5 % of the limit is an eviction.
    """
    limit = LIMIT_NS if is_age else LIMIT_BYTES
    levels = np.round(series.ravel() * limit).astype(np.int64)
    count, minutes = series.shape
    from_ns = START_NS + MINUTE_NS * np.tile(np.arange(minutes), count)
    names = [f"persistent://acme/ns/t{number:04}" for number in range(count)]
    acts = np.zeros_like(series, dtype=np.int64)
    if evicts:
        acts[:, 1:] = np.diff(series, axis=1) < -0.05
    columns: dict[str, Any] = {
        "topic": np.repeat(names, minutes),
        "minute": pa.array(from_ns // 1_000, pa.timestamp("us", "UTC")),
        "from_ns": from_ns,
        "to_ns": from_ns + MINUTE_NS,
        "oldest_age_ns" if is_age else "backlog_bytes": levels,
        "quota_time_limit_ns" if is_age else "quota_size_limit_bytes": np.full(len(levels), limit),
        "eviction_size_acts": acts.ravel(),
    }
    schema = table_arrow_schema(INTERVALS)
    return pa.table(
        {
            name: columns.get(name, pa.nulls(len(from_ns), schema.field(name).type))
            for name in dict.fromkeys(("minute", *FORECAST_COLUMNS))
        }
    )


def score_of(name: str, count: int, seed: int) -> Score:
    """The score of all forecasts of some series of a family."""
    series = family(name, count, seed)
    table = minutes_table(series, evicts=name == "sawtooth", is_age=name in AGE_FAMILIES)
    rows = score_table(table, 0, 1 << 62).to_pylist()
    parts = [Score(**{f: row[f] for f in Score.__slots__}) for row in rows]
    return sum(parts, Score())


def live_band(name: str, count: int, seed: int) -> tuple[int, int]:
    """How many bands of a broker held, of how many, over some series with a sample each minute:
    those that expect the breach within an hour, of levels above a tenth of the limit."""
    held = told = 0
    for series in family(name, count, seed):
        approach, levels = Approach(float(series[0]), 0), series.tolist()
        breaches = _next_breaches(levels)
        for minute in range(1, len(levels)):
            approach.observe(levels[minute], minute * NS_PER_MINUTE)
            likely_s = approach.seconds_to(1.0, levels[minute])
            found = approach.band_to(1.0, levels[minute])
            if found is None or levels[minute] < 0.1 or (likely_s or 0) > S_PER_HOUR:
                continue
            breach, latest_s = breaches[minute], found.latest_s
            if breach is None:
                left_s = (len(levels) - minute) * S_PER_MINUTE
                if latest_s is not None and latest_s > left_s:
                    continue  # the series ends before that is known
                told, held = told + 1, held + (latest_s is None)
                continue
            after_s = (breach - minute) * S_PER_MINUTE
            is_in_time = latest_s is None or after_s <= latest_s + S_PER_MINUTE
            told, held = (
                told + 1,
                held + (found.earliest_s - S_PER_MINUTE <= after_s and is_in_time),
            )
    return held, told


def _next_breaches(levels: list[float]) -> list[int | None]:
    """For each minute the next one in which the limit is reached; None if none is."""
    found: list[int | None] = []
    following: int | None = None
    for minute in range(len(levels) - 1, -1, -1):
        following = minute if levels[minute] >= 1 else following
        found.append(following)
    return found[::-1]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=40, help="of each family")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    table = Table("Quota forecast")
    rng = np.random.default_rng(options.seed)
    values = np.cumsum(rng.normal(1.0, 1.0, (WINDOWS, WINDOW_MINUTES)), axis=1)
    times_s = np.tile(60.0 * np.arange(1.0 - WINDOW_MINUTES, 1.0), (WINDOWS, 1))
    began_s = time.perf_counter()
    slope_quantiles(times_s, values, (0.5,))
    slopes_s = time.perf_counter() - began_s
    breach(band(times_s, values), np.full(WINDOWS, 200.0))
    forecasts_s = time.perf_counter() - began_s - slopes_s
    table.add("Theil-Sen slopes", f"{WINDOWS / slopes_s:,.0f} windows/s")
    table.check(
        "forecasts", 1e6 * forecasts_s / WINDOWS, "us", 1e6 / WINDOWS_PER_S_MIN, note="each"
    )
    for families, together in ((FAMILIES, "all backlogs"), (AGE_FAMILIES, "all ages")):
        total = Score()
        for name in families:
            score = score_of(name, options.series, options.seed)
            table.add(name, describe(score))
            total += score
        table.add(together, describe(total))
    for families, together in ((FAMILIES, "all backlogs"), (AGE_FAMILIES, "all ages")):
        counts = [live_band(name, options.series, options.seed) for name in families]
        for name, (held, told) in zip(families, counts, strict=True):
            table.add(f"the broker's band, {name}", f"held {held / told:.2f} of {told:,}")
        mean = sum(held / told for held, told in counts) / len(counts)
        table.add(f"the broker's band, {together}", f"held {mean:.2f}, mean of the families")
    table.print()


def describe(score: Score) -> str:
    """The figures of one score in a line."""
    found = score.document()
    shares = ("coverage", "level_coverage", "missed_share", "false_alarm_share")
    said = [f"{name} " + ("-" if found[name] is None else f"{found[name]:.2f}") for name in shares]
    loss = found["level_pinball_50"]
    return f"{', '.join(said)}, loss {0.0 if loss is None else loss:.4f}, of {score.forecasts:,}"


if __name__ == "__main__":
    main()
