"""The commands of ``headgate pipeline``: what they take, and how they end.

``command`` names them; each other module has one of them, or what several share (``common``).
The work is in ``headgate.pipeline``; only those that need Spark start it.
"""
