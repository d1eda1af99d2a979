"""When a spike of messages is over, the memory signal says so, however large the process stays
(rule 5.3)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

LOW_SHARE = 0.7
LIMIT_S = 60


@pytest.mark.parametrize("body_bytes", [1_024, 102_400])
def test_a_gigabyte_that_has_gone_does_not_count(body_bytes: int) -> None:
    script = Path(__file__).with_name("memory_spike.py")
    command = [sys.executable, str(script), str(body_bytes)]
    told = json.loads(
        subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=LIMIT_S).stdout
    )
    assert told["before"] < 0.1
    assert told["top"] > 0.9
    assert told["after"] < 0.3 < LOW_SHARE, told
    assert told["fell_s"] < 10
