"""What one owner may have of a memory that all share, when it is used up.

At the bound those that have little go on, up to twice the bound, so that few that have much hold up
no others. Each new subscription, or partition, has little. So one client with very many of them
would get there alone, and nobody else would have anything: the owners with most stop before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

OWNER_PART: Final = 4
"""Beyond the bound, owners share one and a half of it. Each may have this part of it in any
case."""


def has_its_share(by_owner: Mapping[str, int], owner: str, bound: int) -> bool:
    """Whether an owner has what it may have beyond ``bound``. ``by_owner`` has what each one takes
    that takes something, in the unit of the bound."""
    taken = by_owner.get(owner, 0)
    owners_count = len(by_owner) + (not taken)
    return taken >= max(3 * bound // (2 * owners_count), bound // OWNER_PART)
