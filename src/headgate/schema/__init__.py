"""Definitions of schemas: what is well formed, which are the same, which are compatible.

Pure functions over the definitions that clients send. Those that may take long are generators,
which yield the work units that they used: the broker runs them in slices. A definition is bounded
in size, in depth and in the work of a comparison, so that no client can hold the broker with one.
Other packages may import everything here but names with an underscore.
"""
