"""Draw the plots of docs/guide/adaptive-laws.md out of the simulation: the same files each time."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import matplotlib.pyplot as plt

from headgate.flow.adaptive.cycle import Law
from headgate.testing.adaptive_plant import STEPS_PER_S, Look, PlantTopic
from headgate.testing.adaptive_scenes import DRAIN, memory_scene, scene

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "guide" / "img"
COLOURS: Final = {Law.PRESSURE: "#c2570c", Law.DRAIN: "#1d5fa8"}
QUIET: Final = "#6b7280"
LOADS: Final = ("demand x4", "consumers stop, demand x2")
QUOTA_S: Final = 12
SEED: Final = 4
LIGHT_TOPICS: Final = 50
STYLE: Final = {
    "svg.hashsalt": "headgate",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "legend.frameon": False,
    "figure.facecolor": "white",
}


def by_second(looks: Sequence[Look], of: str) -> tuple[list[int], list[float]]:
    """The mean of each second."""
    values = [float(getattr(look, of)) for look in looks]
    seconds = len(values) // STEPS_PER_S
    means = [
        round(sum(values[at * STEPS_PER_S : (at + 1) * STEPS_PER_S]) / STEPS_PER_S, 1)
        for at in range(seconds)
    ]
    return list(range(seconds)), means


def draw_backlog() -> Any:
    """Both laws alone, without the quota's hold: backlog above, what is published below."""
    figure, axes = plt.subplots(2, len(LOADS), figsize=(9, 5), sharex=True, sharey="row")
    for column, load in enumerate(LOADS):
        upper, lower = axes[0][column], axes[1][column]
        for law in Law:
            topic = scene(load, law, QUOTA_S, SEED)
            _draw_topic(topic, law, upper, lower)
        seconds = range(len(topic.looks) // STEPS_PER_S)
        wanted = [topic.demand.at(second + 0.5) / DRAIN for second in seconds]
        able = [topic.capacity.at(second + 0.5) / DRAIN for second in seconds]
        lower.step(seconds, wanted, color=QUIET, lw=1, ls=":", label="producers want")
        lower.step(seconds, able, color="black", lw=1, ls="--", label="consumers can")
        upper.axhline(1, color="black", lw=1)
        upper.set_title(load)
        upper.text(-5, 1.03, "quota", ha="left", va="bottom")
        lower.set_xlabel("seconds")
    axes[0][0].set_ylabel("backlog / quota")
    axes[1][0].set_ylabel("published / drain")
    axes[0][0].legend(loc="upper right")
    axes[1][0].legend(loc="upper right")
    return figure


def _draw_topic(topic: PlantTopic, law: Law, upper: Any, lower: Any) -> None:
    seconds, backlog = by_second(topic.looks, "backlog_bytes")
    _, published = by_second(topic.looks, "published")
    share = [round(value / (topic.size_limit or 1), 4) for value in backlog]
    upper.plot(seconds, share, color=COLOURS[law], label=f"law {law}")
    lower.plot(seconds, [round(value / DRAIN, 3) for value in published], color=COLOURS[law], lw=1)


def draw_memory() -> Any:
    """A disk goes slow: the broker's memory, and what light and heavy topics publish."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.8), sharex=True)
    plant = memory_scene(Law.PRESSURE, SEED)
    light, heavy = plant.topics[:LIGHT_TOPICS], plant.topics[LIGHT_TOPICS:]
    left.plot(plant.memory_shares, color=COLOURS[Law.PRESSURE])
    for mark, name in ((0.70, "low watermark"), (0.85, "high watermark")):
        left.axhline(mark, color=QUIET, lw=1, ls=":")
        left.text(70, mark + 0.01, name, color=QUIET)
    left.set_ylim(0.3, 1)
    left.set_ylabel("memory used")
    for topics, colour, name in (
        (light, COLOURS[Law.DRAIN], "50 light topics"),
        (heavy, COLOURS[Law.PRESSURE], "6 heavy topics"),
    ):
        sums = [by_second(topic.looks, "published")[1] for topic in topics]
        wanted = sum(topic.demand.largest for topic in topics)
        shares = [round(sum(second) / wanted, 3) for second in zip(*sums, strict=True)]
        right.plot(shares, color=colour, label=name)
    right.set_ylim(0, None)
    right.set_ylabel("published / wanted")
    right.legend(loc="upper right")
    for axis in (left, right):
        axis.set_xlabel("seconds")
    return figure


def main(folder: Path) -> None:
    """Write both."""
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        for name, draw in (("adaptive-backlog", draw_backlog), ("adaptive-memory", draw_memory)):
            figure = draw()
            figure.tight_layout()
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
