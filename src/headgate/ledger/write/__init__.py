"""The write path of the log: records are staged, sealed into a batch, written and made durable.

``staging`` runs on the event loop and never blocks; ``writer`` runs on the commit thread. Imports
``ledger.index`` and ``ledger.format``.
"""
