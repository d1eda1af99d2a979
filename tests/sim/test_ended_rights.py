"""When the verb that takes a right away has returned, nothing that the right allowed happens any
more, but for the one change of each subscription and schema that had begun.

A seed that fails is played again, and many more are played, with
``./dev test simulation -- -k ended_rights --simulation-seeds FIRST:COUNT``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headgate.broker.commands.producer_access import ProducerAccess
from headgate.broker.rights_rollout import RightsRollout
from headgate.broker.subscriptions import Subscriptions
from tests.seeds import play_seeds
from tests.sim.rightsim.play import play
from tests.sim.rightsim.verbs import VERBS

SEEDS = range(2 * len(VERBS))
REVOKED_GRANTS = range(0, 100 * len(VERBS), len(VERBS))
"""Seeds with the first verb."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    play_seeds(metafunc, SEEDS)


def test_nothing_happens_that_an_ended_right_allowed(seed: int) -> None:
    played = play(seed)
    # It did much while it had its right.
    assert played.commands_count > 250
    assert played.served_count > 0
    assert played.refused_count > 20


def test_the_same_seed_plays_the_same() -> None:
    assert play(0) == play(0)


# The simulation notices a broker that forgets to ask again --------------------------------------


def _forgets_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RightsRollout, "_ask_about_waiter", lambda *_: 1)


def _forgets_before_a_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    obtain = ProducerAccess.obtain

    async def forgetful(access: ProducerAccess, attempt: Any, _check: Any) -> bool:
        return await obtain(access, attempt, lambda: None)

    monkeypatch.setattr(ProducerAccess, "obtain", forgetful)


def _forgets_behind_other_seeks(monkeypatch: pytest.MonkeyPatch) -> None:
    seek = Subscriptions.seek

    async def forgetful(
        at: Subscriptions, subscription: Any, ordinal: int, *_: Any, **__: Any
    ) -> None:
        await seek(at, subscription, ordinal)

    monkeypatch.setattr(Subscriptions, "seek", forgetful)


@pytest.mark.parametrize(
    "forget", [_forgets_who_waits, _forgets_before_a_claim, _forgets_behind_other_seeks]
)
def test_a_forgotten_question_is_found(
    forget: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    forget(monkeypatch)
    with pytest.raises(AssertionError, match="a grant is revoked"):
        [play(seed) for seed in REVOKED_GRANTS]
