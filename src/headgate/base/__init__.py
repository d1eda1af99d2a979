"""What everything else rests on: clock protocol, names, ids, units, error roots, limits.

Imports the standard library only, and may be imported by every other package. Nothing
here knows Pulsar's wire format, the disk, or the event loop.
"""
