"""Explain: what delays a backlog or a producer, by which limit, and since when.

``reports`` declares the JSON and ``diagnosis`` judges one subscription by its history. The other
modules put the reports together.
"""
