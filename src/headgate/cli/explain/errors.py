"""What ``headgate explain`` ends with if it has no answer."""

from __future__ import annotations

from typing import Final

import click

EXIT_NOT_ANSWERED: Final = 1
"""Nothing that explain knows answers at the URL."""
EXIT_REFUSED: Final = 2
"""The request is wrong: no such topic, or a name or option that is not allowed."""


class ExplainError(click.ClickException):
    """One sentence for the operator, with an exit status."""

    def __init__(self, message: str, exit_status: int) -> None:
        super().__init__(message)
        # Click has it as an attribute of the class.
        self.__dict__["exit_code"] = exit_status


class NotHeadgateError(ExplainError):
    """What answers has no account of its own: perhaps Apache Pulsar."""
