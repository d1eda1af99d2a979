"""What refusals say."""

from __future__ import annotations

from headgate.engine.errors import DamagedError, EngineError


def test_damage_names_whose_it_is_the_place_and_what_to_do() -> None:
    error = DamagedError("persistent://acme/shop/orders", "0001.log offset 64: 3 entries are lost")
    assert isinstance(error, EngineError)
    assert str(error) == (
        "persistent://acme/shop/orders is damaged: 0001.log offset 64: 3 entries are lost. Have it "
        "served as it is with 'headgate admin topics accept-damage', or delete it"
    )
