"""The files of the log on disk, and the rules of its directory.

``records`` is the layout of segments and of each record kind, ``directory`` the lock, the format
version and atomic file writes, ``identity`` the link to the metadata, ``flush_position`` the
position up to which the log is durable. Imports ``fs``, ``base`` and ``ledger.errors``.
"""
