"""Tenants, namespaces, policies, topics and dynamic settings: what exists, kept durably.

``store`` says what a store must do; ``sqlite_store`` and ``memory_store`` do it. ``catalog`` is
the domain model over a store: it validates and plans, and never shows what is not yet durable.
Imports ``headgate.base`` only (and msgspec, sqlite3).
"""
