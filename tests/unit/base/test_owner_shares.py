"""Who takes most of what all tenants share."""

from __future__ import annotations

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
