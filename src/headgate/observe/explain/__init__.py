"""Explain: what delays a backlog or a producer, by which limit, and since when.

``diagnosis`` judges one subscription of the broker by its history. The other modules put the
reports together, whose JSON :mod:`headgate.explain.reports` declares.
"""
