"""Adaptive publish throttling (law 5): the controller's decisions as arithmetic on signals.

Pure: imports ``base`` and the laws of quotas.
"""
