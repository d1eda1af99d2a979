"""How much Python a call executes: a measure of work that no load of the machine changes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def bytecodes(action: Callable[[], Any]) -> int:
    """Bytecode instructions that ``action`` and everything it calls execute. One call of a C
    function counts as one, whatever it does."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if event == "call":
            frame.f_trace_opcodes = True
            frame.f_trace_lines = False
        elif event == "opcode":
            count += 1
        return trace

    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()  # a collection would count: Hypothesis has a callback in Python that times it
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return count
