"""The text of a metrics page."""

from __future__ import annotations

from headgate.telemetry.prometheus.compressed import BLOCK_BYTES, Compressed
from headgate.telemetry.prometheus.page import Page, number
from headgate.telemetry.prometheus.series.catalogue import SERIES


def test_numbers_are_written_as_pulsar_writes_them() -> None:
    assert [number(7), number(7.5), number(0.0), number(1 / 3)] == ["7", "7.500", "0.000", "0.333"]


def test_the_samples_of_a_name_stand_together_however_many_slices_gave_them() -> None:
    page, (first, second) = Page(), SERIES[:2]
    for index in range(3):
        page.lines_of(first).append(f"{first.name} {index}")
        page.lines_of(second).append(f"{second.name} {index}")
        page.end_slice()
    text = b"".join(_texts(page)).decode()
    assert text.splitlines() == [
        f"# TYPE {first.family} {first.type}",
        *(f"{first.name} {index}" for index in range(3)),
        f"# TYPE {second.family} {second.type}",
        *(f"{second.name} {index}" for index in range(3)),
    ]


def test_a_block_is_compressed_as_soon_as_its_text_is_there() -> None:
    page = Page()
    assert page.compress_one() is False
    page.lines_of(SERIES[0]).append("x" * BLOCK_BYTES)
    page.end_slice()
    assert page.compress_one() is True
    assert page.compress_one() is False


def _texts(page: Page) -> list[bytes]:
    whole = Compressed()
    for block in page.blocks(SERIES):
        whole.add(block)
    return list(whole.as_text())
