"""The official clients' own suites, played against a broker of ours by ``./dev test-peer``.

A suite expects a broker at Pulsar's ports on ``localhost``, with its certificates, keys and rights.
So each suite runs in a network namespace of its own, where those ports are free. ``*_absent.txt``
list the tests that need what the broker does not have, with the reason.
"""
