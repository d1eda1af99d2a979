"""The seam for authorization: every command and route names the operation that it performs.

Operations are named ``what.verb`` (:mod:`headgate.wire.commands`, ``headgate.admin.operations``).
There is no authentication yet, so the role is always empty and :class:`AllowAll` decides; the
broker therefore binds to loopback unless told otherwise.
"""

from __future__ import annotations

from typing import Protocol


class Authorizer(Protocol):
    """Decides who may do what."""

    def allows(self, role: str, operation: str, resource: str) -> bool:
        """Whether ``role`` may perform ``operation`` on ``resource`` (a topic, a namespace)."""


class AllowAll:
    """Everybody may do everything."""

    def allows(self, role: str, operation: str, resource: str) -> bool:  # noqa: ARG002
        """See :meth:`Authorizer.allows`."""
        return True
