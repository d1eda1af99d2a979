"""The laws of flow control: pure arithmetic with time as an argument.

``limits`` holds rate limits and the gate that applies them, ``quota`` backlog quotas, ``adaptive``
the controller's publish limits, ``account`` the seconds of each state and the verdict about a
backlog. ``sentences`` explains each finding to an operator in one sentence. The package imports
``base`` only and reads no clock, file or socket, so the same code runs in the broker, in a
simulation and in a Spark worker. "Law 1.3" refers to docs/flow-laws.md.
"""
