"""The asyncio shell around the logs and the metadata: blocking work runs on threads.

``managed_logs`` holds each log with its ``committer`` (group commit), ``entry_reader`` and
``log_maintenance``; ``metadata_writer`` commits metadata, ``store_binding`` and ``identity_writer``
keep both stores consistent. ``lanes`` are the threads. May import ``engine``, ``ledger``,
``metadata``, ``flow`` and ``base``.
"""
