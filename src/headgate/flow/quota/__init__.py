"""Backlog quotas (law 4): what a subscription owes, which quota is in force, when it is exceeded.

Pure: imports base and :mod:`headgate.flow.limits`.
"""
