"""The log's use of the disk: segments are prepared, sealed, punched and deleted.

``maintenance`` decides in slices on the event loop and hands the blocking part to the commit
thread. Imports ``ledger.write``, ``ledger.index`` and ``ledger.format``.
"""
