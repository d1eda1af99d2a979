"""Pulsar's binary protocol without any I/O.

* :mod:`headgate.wire.frame` splits bytes into frames.
* :mod:`headgate.wire.state_machine` holds which commands a client may send now.
* :mod:`headgate.wire.commands` lists the commands, their operations and their failure replies.
* :mod:`headgate.wire.encode` builds the frames of a broker, :mod:`headgate.wire.client` those of a
  client.
* :mod:`headgate.wire.entry` and :mod:`headgate.wire.batch` look into entries, which a broker
  otherwise passes on unread.

Rules of this package: pure functions and state machines. No time, no randomness, no sockets, no
logging. Import the module that you need; this file re-exports nothing.
"""
