"""Shared basics: clocks, names, positions, units, errors, acknowledgement sets.

Imports the standard library only; every other package may import it. Nothing here knows Pulsar's
wire format, the disk, or the event loop.
"""
