"""The log's use of the disk: segments made, sealed, checkpointed, punched and deleted.

``maintenance`` decides in slices on the event loop and gives the blocking part to the commit
thread. Imports ``ledger.write``, ``ledger.index`` and ``ledger.format``.
"""
