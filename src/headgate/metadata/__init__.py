"""The durable metadata: tenants, namespaces, policies, topics and dynamic settings.

``store`` is the protocol of a store; ``sqlite_store`` and ``memory_store`` implement it.
``catalog`` is the domain model over a store: it validates and plans changes, and shows only durable
ones. Imports ``headgate.base`` only (and msgspec, sqlite3).
"""
