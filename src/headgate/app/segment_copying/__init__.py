"""Copying of segments in a process of its own, beside the broker's.

``copy_process`` is the broker's side, ``copy_worker`` what runs in the other process, ``messages``
what they say to each other. May import ``ledger``, ``fs`` and ``base``.
"""
