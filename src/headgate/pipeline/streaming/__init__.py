"""The structured streaming query that reads telemetry: its metrics, its gaps, its refreshes.

May import ``derived``, ``store``, ``output`` and all that these import.
"""
