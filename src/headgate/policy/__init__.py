"""Settings, and which limit, quota and retention is in force: one resolver each, for all who ask.

Imports the engine's types, metadata, flow and base.
"""
