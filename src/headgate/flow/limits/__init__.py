"""Rate limits (laws 1 to 3): precedence, budgets, the gate, fair turns.

Pure: imports ``base`` and its own modules.
"""
