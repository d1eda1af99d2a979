"""TLS on both ports: profile, files and their reload, and the handshake of each connection.

``profile`` and ``hello`` are pure, and ``handshake_steps`` has the threads of handshakes. ``current`` has the contexts in force, ``refresh`` looks for
changed files, ``entry`` takes a connection through its handshake with the bounds of connections
that have not authenticated, and ``transport`` is what the protocol behind it writes to. May import
what ``headgate.app`` may; nothing outside ``headgate.app`` imports it.
"""
