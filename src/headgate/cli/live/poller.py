"""Requests to the admin API in a thread, one at a time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from headgate.base.errors import HeadgateError

Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a request ended with: an answer, or a sentence that says why there is none."""

    path: str
    answer: Answer | None
    problem: str = ""


class Poller:
    """Asks for one path at a time."""

    def __init__(self, fetch: Callable[[str], Answer]) -> None:
        """``fetch`` blocks, and raises a click exception or an error of Headgate's."""
        self._fetch = fetch
        self._outcomes: queue.SimpleQueue[Outcome | Exception] = queue.SimpleQueue()
        self._is_asking = False

    def begin(self, path: str) -> bool:
        """Ask for ``path``, unless a request is running; whether it was begun."""
        if self._is_asking:
            return False
        self._is_asking = True
        # Credentials may have a warning for the running command, whose context is of this thread.
        context = click.get_current_context(silent=True)
        # A daemon: who quits does not wait for a broker that hangs.
        threading.Thread(target=self._ask, args=(path, context), daemon=True).start()
        return True

    def take(self) -> Outcome | None:
        """The outcome of the last request, once, when it is there.

        Raises:
            Exception: ``fetch`` failed with an error that it does not declare.
        """
        try:
            outcome = self._outcomes.get_nowait()
        except queue.Empty:
            return None
        self._is_asking = False
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _ask(self, path: str, context: click.Context | None) -> None:
        try:
            if context is None:
                answer = self._fetch(path)
            else:
                with context.scope(cleanup=False):
                    answer = self._fetch(path)
        except click.ClickException as error:
            self._outcomes.put(Outcome(path, None, error.format_message()))
        except HeadgateError as error:
            self._outcomes.put(Outcome(path, None, str(error)))
        except Exception as error:  # It is raised where the outcome is taken.
            self._outcomes.put(error)
        else:
            self._outcomes.put(Outcome(path, answer))
