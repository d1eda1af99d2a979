"""The telemetry record: one columnar message format, its codec and the meaning of every field.

``fields`` is the only definition of the fields. The ``.proto`` file, the codec, the pipeline's
table schemas and the reference pages follow from it. Imports base and the protobuf runtime only, so
that a broker writes records without Arrow or numpy.
"""
