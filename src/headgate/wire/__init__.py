"""Pulsar's binary protocol without any I/O.

Bytes become frames in :mod:`headgate.wire.frame`; :mod:`headgate.wire.state_machine` says which
commands a peer may send now; :mod:`headgate.wire.commands` says what each command is called, which
operation it performs and how it may be refused; :mod:`headgate.wire.encode` makes the frames that
a broker sends and :mod:`headgate.wire.client` those that a client sends; entries, the opaque cargo,
are looked into by :mod:`headgate.wire.entry` and :mod:`headgate.wire.batch`.

Rules of this package: pure functions and state machines. No time, no randomness, no sockets, no
logging. Import the module that you need; this file re-exports nothing.
"""
