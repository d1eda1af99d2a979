"""The controller of adaptive publish throttling, and the memory that it watches.

Imports policy, engine, flow and base.
"""
