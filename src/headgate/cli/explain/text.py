"""The answer of ``headgate explain`` as text: each sentence first, its figures below.

The input is the JSON that ``headgate.explain.reports`` documents, the output plain lines.
Colour only repeats the words, so a pipe and a terminal without colour lose nothing.
"""

from __future__ import annotations

from headgate.cli.explain.figures import (
    Report,
    capitalized,
    count_text,
    instant_text,
    short_name,
    topic_title,
)
from headgate.cli.explain.inferred import (
    EMPTY,
    add_not_seen,
    cluster_text,
    inferred_publishing_line,
    is_inferred,
)
from headgate.cli.explain.limits import add_limits
from headgate.cli.explain.page import INDENT, WIDTH_MAX, WIDTH_MIN, Page
from headgate.cli.explain.publishing import add_adaptive, add_parked, add_quotas, publishing_line
from headgate.cli.explain.storage import add_storage
from headgate.cli.explain.subscription import add_subscription, add_verdict, keeps_up


def explain_text(answer: Report, width: int, *, color: bool) -> str:
    """The answer of ``explain`` (largest backlogs, one topic, or the disk) as a page.

    A line has at most ``width`` characters. Names are never broken, so that they can be copied.
    """
    page = Page(min(max(width, WIDTH_MIN), WIDTH_MAX), color)
    if "logs" in answer:
        add_storage(page, answer)
    elif "broker" in answer:
        _add_top(page, answer)
    else:
        _add_topic(page, answer)
    return page.text()


def _add_top(page: Page, answer: Report) -> None:
    reports = answer["subscriptions"]
    backlogs = [report for report in reports if not keeps_up(report)]
    fine = [report for report in reports if keeps_up(report)]
    total = count_text(answer["subscriptionsTotal"], "subscription")
    head = f"{answer['broker']}, {instant_text(answer['at'])}: {total}"
    if is_inferred(answer):
        head += f" of {cluster_text(answer)}, inferred"
    if not backlogs:
        page.add(f"{head}, no backlog.", bold=True)
        if is_inferred(answer):
            page.add(EMPTY)
    else:
        page.add(f"{head}; the largest backlogs:", bold=True)
    storage = answer.get("storage") or {}  # absent in answers of earlier releases
    if storage.get("sentence"):
        page.blank()
        page.add(f"{capitalized(storage['sentence'])}.", bold=True)
    for place, report in enumerate(backlogs, start=1):
        page.blank()
        page.add(f"{topic_title(report)}  subscription {report['subscription']}",
                 first=f"{place:>2}. ", rest=INDENT, bold=True)  # fmt: skip
        add_verdict(page, report)
    if fine:
        page.blank()
        names = (f"{topic_title(report)} subscription {report['subscription']}" for report in fine)
        page.add(f"Keeping up, with messages in flight: {', '.join(names)}.")
    for near in answer["quotas"]:
        page.blank()
        page.add(f"{short_name(near['topic'])}: {near['quota']['sentence']}.")
    _add_parked_topics(page, answer)
    if answer["damaged"]:
        page.blank()
        page.add("Damaged on the disk, and stopped until the damage is accepted:", bold=True)
    for one in answer["damaged"]:
        whose = f", subscription {one['subscription']}" if one["subscription"] else ""
        page.add(f"{short_name(one['topic'])}{whose}: {one['damage']}.", first=INDENT, rest=INDENT)
    left_out = answer["withBacklog"] - len(reports)
    if left_out > 0:
        page.blank()
        page.add(f"{left_out:,} more, all smaller; --count shows more.")
    add_not_seen(page, answer)


def _add_parked_topics(page: Page, answer: Report) -> None:
    """Topics whose producers wait, except those that the page names with their quota."""
    shown = {near["topic"] for near in answer["quotas"] if near["quota"]["exceeded"]}
    held = [
        report
        for report in answer["publishing"]
        if report["causes"] != ["backlog_quota"] or report["topic"] not in shown
    ]
    if held:
        page.blank()
        page.add("Topics whose producers are held:", bold=True)
        for report in held:
            page.add(
                f"{short_name(report['topic'])}: {report['sentence']}.", first=INDENT, rest=INDENT
            )


def _add_inferred_topic(page: Page, answer: Report, head: str) -> None:
    """A topic of an Apache Pulsar cluster, whose limits and waiting producers are not listed."""
    page.add(f"{head}: {cluster_text(answer)}, inferred", bold=True)
    page.add(inferred_publishing_line(answer))
    if held := answer["publishing"]["sentence"]:
        page.add(f"{capitalized(held)}.")
    add_quotas(page, answer["quotas"], partitioned=bool(answer["partitions"]))
    for report in answer["subscriptions"]:
        page.blank()
        add_subscription(page, report)
    if not answer["subscriptions"]:
        page.add(capitalized(answer["sentence"]))
    add_not_seen(page, answer)


def _add_topic(page: Page, answer: Report) -> None:
    partitions = answer["partitions"]
    head = f"{topic_title(answer)}, {instant_text(answer['at'])}"
    if is_inferred(answer):
        _add_inferred_topic(page, answer, head)
        return
    page.add(head, bold=True)
    page.add(publishing_line(answer))
    storage = answer.get("storage") or {}
    # The publishing sentence names a full disk.
    if storage.get("sentence") and not storage["diskFull"]:
        page.add(f"{capitalized(storage['sentence'])}.")
    add_parked(page, answer["publishing"], partitioned=bool(partitions))
    add_quotas(page, answer["quotas"], partitioned=bool(partitions))
    add_adaptive(page, answer["adaptive"], answer["at"])
    for report in answer["subscriptions"]:
        page.blank()
        add_subscription(page, report)
    if not answer["subscriptions"]:
        sentence = answer["sentence"]
        page.add(f"DAMAGED: {sentence}" if answer["damage"] else sentence.capitalize())
    page.blank()
    own = (limit for report in answer["subscriptions"] for limit in report["limits"])
    add_limits(page, [*own, *answer["limits"], *answer["publishing"]["limits"]])
    for part in answer["perPartition"] or ():
        page.blank()
        _add_topic(page, part)
