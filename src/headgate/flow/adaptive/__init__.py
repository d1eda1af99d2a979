"""Adaptive publish throttling (law 5): one cycle of the controller as arithmetic on signals.

Pure: imports base and the laws of quotas.
"""
