"""The broker without its shell: topics, subscriptions, consumers, dispatch, the account of time.

Events come in as method calls (published, durable, flow, ack, a consumer came or went, an entry was
read, time passed); effects go out, in order, through the protocols of :mod:`headgate.engine.ports`,
which the broker's shell, or a test, implements. Nothing here reads a clock, touches a disk or a
socket, or knows Pulsar's wire format; an entry is an ordinal of its topic and opaque bytes. May
import ``flow`` and ``base``.
"""
