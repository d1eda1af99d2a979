"""Failures of the engine as refusals of the admin API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headgate.base.errors import CorruptionError
from headgate.engine.errors import (
    DamagedError,
    EngineError,
    SubscriptionBusyError,
    TooManySubscriptionsError,
)
from headgate.metadata.errors import RefusalError, conflict, not_allowed
from headgate.schema.errors import IncompatibleSchemaError, InvalidSchemaError


@contextmanager
def refusals() -> Iterator[None]:
    """Turns refusals of the engine into those of the admin API."""
    try:
        yield
    except (SubscriptionBusyError, TooManySubscriptionsError) as error:
        raise not_allowed(str(error)) from error
    except (DamagedError, CorruptionError) as error:
        raise RefusalError(500, str(error)) from error
    except EngineError as error:
        # The topic or subscription is being closed or moved: the client may retry.
        raise RefusalError(503, str(error)) from error


@contextmanager
def schema_refusals() -> Iterator[None]:
    """Turn refusals of a schema into those of the admin API."""
    try:
        yield
    except InvalidSchemaError as error:
        raise RefusalError(422, str(error)) from error
    except IncompatibleSchemaError as error:
        raise conflict(str(error)) from error
