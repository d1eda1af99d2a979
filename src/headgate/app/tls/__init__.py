"""TLS on both ports: profile, files and their reload, and the handshake of each connection.

``profile`` and ``hello`` are pure. ``current`` has the contexts in force, ``refresh`` looks for
changed files, ``handshake_steps`` has the threads of handshakes, ``entry`` takes a connection
through its handshake with the bounds of connections that have not authenticated, and ``transport``
is what the protocol behind it writes to. May import what ``headgate.app`` may; nothing outside
``headgate.app`` imports it.
"""
