"""A fresh broker's catalog for each test."""

from __future__ import annotations

import pytest

from headgate.metadata.catalog import Catalog
from tests.unit.metadata.catalog_rig import Broker


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def catalog(broker: Broker) -> Catalog:
    return broker.catalog
