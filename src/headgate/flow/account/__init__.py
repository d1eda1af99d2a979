"""The account of time: its states, the verdict about a backlog, the demonstrated rate.

Pure: imports ``base``, ``flow.limits`` and its own modules.
"""
