"""The way of a record into the log: staged, sealed into a batch, written, durable.

``staging`` and what it uses belong to the event loop and never block; ``writer`` belongs to the
commit thread. Imports ``ledger.index`` and ``ledger.format``.
"""
