"""Shared basics: the clock protocol, names, positions, units, errors, acknowledgement sets.

Imports the standard library only, and every other package may import it. Nothing here knows
Pulsar's wire format, the disk, or the event loop.
"""
