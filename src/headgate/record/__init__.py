"""The telemetry record: one columnar message format, its codec and the meaning of every field.

``fields`` is the only place where a field is defined; the ``.proto`` file, the codec, the
pipeline's table schemas and the reference pages are all derived from it. Imports base and the
protobuf runtime only, so that a broker can write records without Arrow or numpy.
"""
