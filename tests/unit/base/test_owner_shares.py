"""Who takes most of what all tenants share."""

from __future__ import annotations

import random

from headgate.base.owner_shares import OwnerShares


def test_one_that_is_alone_takes_most() -> None:
    shares = OwnerShares()
    assert shares.takes_most("acme")
    shares.count("acme", 3)
    assert (shares.takes_most("acme"), shares.takes_most("globex")) == (True, False)


def test_those_below_the_average_do_not() -> None:
    shares = OwnerShares()
    amounts = {"acme": 8, "globex": 3, "initech": 4}
    for tenant, amount in amounts.items():
        shares.count(tenant, amount)
    assert [each for each in amounts if shares.takes_most(each)] == ["acme"]
    shares.count("acme", -8)
    assert shares.total == 7
    assert [each for each in amounts if shares.takes_most(each)] == ["initech"]


def test_room_is_made_by_the_largest_whatever_the_number_of_tiny_ones() -> None:
    """Above the average stood each one that is not tiny, with a crowd of tiny ones."""
    shares = OwnerShares()
    assert shares.makes_room("acme")
    for number in range(30):
        shares.count(f"tiny {number}", 1)
    shares.count("acme", 1_000)
    shares.count("globex", 90)
    assert shares.takes_most("globex")
    assert [each for each in ("acme", "globex", "tiny 1") if shares.makes_room(each)] == ["acme"]


def test_those_that_take_about_as_much_make_room_together() -> None:
    shares = OwnerShares()
    for tenant, amount in {"acme": 51, "globex": 49, "initech": 3}.items():
        shares.count(tenant, amount)
    assert (shares.makes_room("acme"), shares.makes_room("globex")) == (True, True)
    assert not shares.makes_room("initech")
    shares.count("acme", -50)
    assert (shares.makes_room("acme"), shares.makes_room("globex")) == (False, True)


def test_the_level_is_that_of_all_down_to_which_a_third_is_freed() -> None:
    """Random amounts that change: those found are exactly those above the level of a recount."""
    story = random.Random(7)
    shares, amounts = OwnerShares(), dict.fromkeys(range(12), 0)
    for _ in range(300):
        owner = story.randrange(12)
        amount = story.choice((0, 1, 5, 80, 700))
        shares.count(str(owner), amount - amounts[owner])
        amounts[owner] = amount
        if not shares.total:
            continue
        shares.makes_room("")
        for each, own in amounts.items():
            kept = sum(min(own, other) for other in amounts.values())
            if abs(kept / shares.total - 2 / 3) > 1 / 20:  # the level may be a little old
                assert shares.makes_room(str(each)) is (own > 0 and kept >= 2 / 3 * shares.total)
