"""Lanes that stop answering are named; an error that no caller expects is fatal."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.errors import InvariantError, StorageError
from headgate.facade.admin_facade import AdminFacade
from headgate.metadata.errors import RefusalError
from headgate.storage.lane_watch import LaneWatch
from headgate.storage.lanes import run_on
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played


@played()
async def test_a_lane_is_stuck_when_it_has_work_and_none_ends(world: World) -> None:
    watch, raw = LaneWatch(world.clock, lambda _name, _began_ns: None), world.lanes[1]
    lane = watch.watched("read", raw)
    await asyncio.sleep(60)
    assert watch.stuck_sentence() == ""  # it has nothing to do
    raw.freeze()
    waiting = [asyncio.ensure_future(run_on(lane, lambda: None)) for _ in range(3)]
    await asyncio.sleep(9)
    assert watch.stuck_sentence() == ""
    await asyncio.sleep(3)
    assert watch.stuck_sentence().startswith("the read lane has not answered for 12")
    raw.thaw()
    await asyncio.gather(*waiting)
    assert watch.stuck_sentence() == ""


@played()
async def test_a_long_queue_that_advances_is_not_stuck(world: World) -> None:
    watch, raw = LaneWatch(world.clock, lambda _name, _began_ns: None), world.lanes[1]
    lane = watch.watched("read", raw)
    raw.latency_ns_min = raw.latency_ns_max = 4 * 10**9
    waiting = [asyncio.ensure_future(run_on(lane, lambda: None)) for _ in range(20)]
    for _ in range(16):
        await asyncio.sleep(5)
        assert watch.stuck_sentence() == ""
    await asyncio.gather(*waiting)


def test_an_error_that_the_callback_does_not_expect_is_fatal() -> None:
    async def story(world: World) -> None:
        world._watch.close()

        def done(_: object, error: BaseException | None) -> None:
            raise KeyError("forgotten")

        world.broker.lanes.metadata.submit(lambda: None, done)
        await asyncio.sleep(1)

    with pytest.raises(InvariantError, match="the end of work of the metadata lane"):
        played()(story)()


async def refusal(world: World) -> tuple[int, str]:
    with pytest.raises(RefusalError) as caught:
        await AdminFacade(world.broker, world.observer).check_health()
    return caught.value.status, caught.value.reason


@pytest.mark.parametrize(("index", "name"), [(0, "commit"), (1, "read"), (2, "metadata")])
def test_health_and_ready_name_a_stuck_lane(index: int, name: str) -> None:
    async def story(world: World) -> None:
        producer = await (await world.connect()).producer(TOPIC)
        facade = AdminFacade(world.broker, world.observer)
        assert facade.why_unready() == ""
        world.lanes[index].freeze()
        sent = producer.send_nowait(b"x")
        lane = getattr(world.broker.lanes, name)
        waiting = asyncio.ensure_future(run_on(lane, lambda: None))
        await asyncio.sleep(12)
        assert facade.why_unready().startswith(f"the {name} lane has not answered for 12")
        status, reason = await refusal(world)
        assert status == 503
        assert reason.startswith(f"the {name} lane has not answered for 12")
        world.lanes[index].thaw()
        await asyncio.gather(sent, waiting)
        assert facade.why_unready() == ""
        await asyncio.sleep(15)
        assert await facade.check_health() == ""

    played()(story)()


@played()
async def test_a_health_check_ends_although_its_commit_does_not(world: World) -> None:
    world.lanes[0].freeze()
    began_s = world.now_s
    assert await refusal(world) == (503, "no commit has ended for 10 s")
    assert world.now_s - began_s == pytest.approx(10, abs=0.1)
    began_s = world.now_s
    assert (await refusal(world))[0] == 503  # at once
    assert world.now_s - began_s < 0.1
    world.lanes[0].thaw()
    await asyncio.sleep(15)
    assert await AdminFacade(world.broker, world.observer).check_health() == ""


@played(telemetry_log=True)
async def test_a_failed_log_is_unready(world: World) -> None:
    facade = AdminFacade(world.broker, world.observer)
    assert world.broker.logs.telemetry is not None
    world.broker.logs.telemetry.log._health.fail(StorageError("bad sector", retryable=False))
    assert facade.why_unready() == ""  # messages are stored and delivered
    assert await refusal(world) == (500, "bad sector")
    world.broker.log._health.fail(StorageError("worse", retryable=False))
    assert facade.why_unready() == "worse"
