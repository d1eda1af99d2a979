"""Derived tables: which hours of each follow from which rows of its source.

One class for each table, with its inputs, what new rows touch, and its rows; ``catalogue`` has them
in the order of dependency. May import ``steps``, ``store`` and ``tables``. Nothing here makes a
session; ``refresh`` walks over the tables.
"""
