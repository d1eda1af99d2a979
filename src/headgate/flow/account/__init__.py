"""The account of time: its states, whose fault a backlog is, what consumers demonstrated.

Pure: imports base and the types of :mod:`headgate.flow.limits`.
"""
