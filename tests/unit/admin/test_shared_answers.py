"""An answer is made once for all who accept its age, and never for who does not."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Sequence

import pytest

from headgate.admin import shared_answers
from headgate.admin.shared_answers import (
    ANSWERS_MAX,
    SharedAnswer,
    SharedAnswers,
    accepted_age_s,
)
from headgate.base.units import NS_PER_S


class Maker:
    """Makes answers that differ, and counts them."""

    def __init__(self, sizes: Sequence[int] = (1, 1)) -> None:
        self.count = 0
        self.now_ns = 0
        self.sizes = sizes
        self.gate: asyncio.Event | None = None

    async def make(self) -> AsyncIterator[bytes]:
        self.count += 1
        number = self.count
        if self.gate is not None:
            await self.gate.wait()

        async def parts() -> AsyncIterator[bytes]:
            for size in self.sizes:
                yield str(number).encode() * size

        return parts()

    async def get(self, answers: SharedAnswers, age_s_max: int, name: str = "n") -> bytes:
        found = await answers.get(name, age_s_max, lambda: self.now_ns, self.make)
        if isinstance(found, SharedAnswer):
            assert gzip.decompress(found.compressed) == found.body
            return found.body
        return b"".join([part async for part in found])


def test_an_answer_is_made_again_when_it_is_too_old() -> None:
    async def play() -> None:
        answers, maker = SharedAnswers(), Maker()
        assert await maker.get(answers, 2) == b"11"
        maker.now_ns = 2 * NS_PER_S
        assert await maker.get(answers, 2) == b"11"
        assert await maker.get(answers, 1) == b"22"
        maker.now_ns += 1
        assert await maker.get(answers, 0) == b"33"
        maker.now_ns += 61 * NS_PER_S
        assert await maker.get(answers, 10**9) == b"44"

    asyncio.run(play())


def test_who_asks_meanwhile_gets_the_same_also_if_the_first_left() -> None:
    async def play() -> None:
        answers, maker = SharedAnswers(), Maker()
        maker.gate = asyncio.Event()
        asked = [asyncio.create_task(maker.get(answers, 2)) for _ in range(5)]
        await asyncio.sleep(0)
        assert maker.count == 1
        asked[0].cancel()
        await asyncio.sleep(0)
        maker.gate.set()
        assert await asyncio.gather(*asked[1:]) == [b"22"] * 4

    asyncio.run(play())


def test_a_failure_is_of_each_who_asks_and_is_not_kept() -> None:
    async def play() -> None:
        answers, maker = SharedAnswers(), Maker()

        async def fail() -> AsyncIterator[bytes]:
            await asyncio.sleep(0)
            raise ValueError("no memory")

        asked = [answers.get("n", 2, lambda: 0, fail) for _ in range(3)]
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert [str(each) for each in results] == ["no memory"] * 3
        assert await maker.get(answers, 2) == b"11"

    asyncio.run(play())


def test_a_long_answer_is_whole_and_kept_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_answers, "ANSWER_BYTES_MAX", 5)

    async def play() -> None:
        answers, maker = SharedAnswers(), Maker([3, 3, 3])
        assert await maker.get(answers, 2) == b"1" * 9
        assert await maker.get(answers, 2) == b"2" * 9

    asyncio.run(play())


def test_few_answers_are_kept() -> None:
    async def play() -> None:
        answers, maker = SharedAnswers(), Maker()
        for number in range(ANSWERS_MAX + 1):
            await maker.get(answers, 2, str(number))
        assert await maker.get(answers, 2, str(ANSWERS_MAX)) == b"99"
        assert await maker.get(answers, 2, "0") == b"1010"

    asyncio.run(play())


@pytest.mark.parametrize(
    ("header", "age_s"),
    [
        ("max-age=2", 2),
        ("no-transform, Max-Age=0", 0),
        ("no-cache", None),
        ("max-age=-1", None),
        ("max-age=" + "9" * 4000, None),
        ("max-age", None),
        ("", None),
    ],
)
def test_the_header_says_which_age_is_accepted(header: str, age_s: int | None) -> None:
    assert accepted_age_s({"cache-control": header}) == age_s
