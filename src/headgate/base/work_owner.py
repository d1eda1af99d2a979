"""For whom the present task works: the tenant that a request is about."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

NO_TENANT: Final = ""
"""The owner of work that is not for one tenant: all wait for it, or nobody does."""

WORK_OWNER: Final[ContextVar[str]] = ContextVar("work owner", default=NO_TENANT)
"""The tenant for which a task works. Tasks that it starts inherit that."""
