"""Explain: what holds a backlog or a producer, by which limit, and since when.

``reports`` declares the JSON, ``situation`` judges one subscription by the history, the other
modules put the reports together.
"""
