"""Backlog quotas (law 4): the backlog of a subscription, and when it exceeds a quota.

Pure: imports ``base``, ``flow.limits`` and its own modules.
"""
