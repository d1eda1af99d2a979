"""Rate limits (laws 1 and 2): which is in force, its budgets, the gate that asks them, fair turns.

Pure: imports base and its own modules alone.
"""
