"""Handlers of the commands of the binary protocol: one module for each group of commands.

A handler gets the connection as a protocol (:mod:`headgate.broker.connection.client_connection`).
The constructor of a handler takes the parts of the broker that it uses. May import that protocol
and the bounds of ``broker.connection``, and the other parts of the broker, but not ``service``.
``server`` gives the handlers to each connection.
"""
