"""Publish limits (law 3): what a static and an adaptive one allow together.

Pure: imports base and :mod:`headgate.flow.limits`.
"""
