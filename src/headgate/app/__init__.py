"""The composition root: settings, the real clock and disk, and everything wired into one broker.

Only this package builds real things (sockets, threads, files, clocks) and gives them to the
packages below.
"""
