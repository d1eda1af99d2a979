"""Rate limits (laws 1 to 3): which is in force, its budgets, the gate, fair turns.

Pure: imports ``base`` and its own modules.
"""
