"""Derived tables: which hours of each depend on which rows of its source.

May import ``steps``, ``store`` and ``tables``. Nothing here makes a session.
"""
