"""Blocks in any order are one valid gzip and the same text."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest

from headgate.telemetry.prometheus.compressed import BLOCK_BYTES, Compressed, combine, deflate


def compressed(texts: list[bytes]) -> Compressed:
    page = Compressed()
    for text in texts:
        page.add(deflate(text))
    return page


@pytest.mark.parametrize(
    "texts",
    [
        [],
        [b""],
        [b"x"],
        [b"x" * BLOCK_BYTES] * 5,
        [b"abc" * 7_000, b"", b"d", b"e" * 100_000],
        [random.Random(1).randbytes(BLOCK_BYTES), b"\x00" * 70_000],
    ],
)
def test_gzip_and_text_are_the_whole(texts: list[bytes]) -> None:
    whole = b"".join(texts)
    page = compressed(texts)
    packed = b"".join(page.as_gzip())
    assert gzip.decompress(packed) == whole
    reader = zlib.decompressobj(16 + zlib.MAX_WBITS)  # of one member, as curl's
    assert reader.decompress(packed) == whole
    assert reader.eof
    assert not reader.unused_data
    assert b"".join(page.as_text()) == whole
    assert (page.size_bytes, page.gzip_bytes) == (len(whole), len(packed))


def test_checksums_of_parts() -> None:
    chance = random.Random(3)
    for _ in range(200):
        a, b = (chance.randbytes(chance.randrange(300)) for _ in range(2))
        assert combine(zlib.crc32(a), zlib.crc32(b), len(b)) == zlib.crc32(a + b)


def test_a_page_takes_a_small_part_of_its_text() -> None:
    lines = [
        f'pulsar_rate_in{{cluster="standalone",namespace="public/default",'
        f'topic="persistent://public/default/orders-{index}"}} {index % 7}.000'
        for index in range(5_000)
    ]
    text = "\n".join(lines).encode()
    page = compressed([text[at : at + BLOCK_BYTES] for at in range(0, len(text), BLOCK_BYTES)])
    assert page.gzip_bytes * 10 < page.size_bytes


@pytest.mark.parametrize("kind", ["as_text", "as_gzip"])
def test_one_that_is_closed_gives_no_more(kind: str) -> None:
    page = compressed([b"x" * 1_000] * 10)
    reading = getattr(page, kind)()
    taken = [next(reading), next(reading)]
    page.close()
    assert list(reading) == []
    assert page.is_closed
    assert len(taken) == 2
