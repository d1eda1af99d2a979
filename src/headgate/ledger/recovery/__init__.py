"""The start of a log: load the checkpoint, replay the rest, assess damage, seal the tail.

``recover`` is the entry point; it runs once, blocks and returns a ``LogState``. Imports
``ledger.write.writer``, ``ledger.index`` and ``ledger.format``.
"""
