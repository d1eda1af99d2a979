"""Shared by all tests: hypothesis runs the same examples every time, so a failure repeats."""

from __future__ import annotations

import hypothesis

hypothesis.settings.register_profile(
    "headgate",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("headgate")
