"""What the log knows about its content, in memory and as stored.

``topic_log`` is the index of one topic's entries, ``cursors`` a durable subscription, ``state`` all
of them together with the segments. ``footer`` stores the index of a sealed segment, ``checkpoint``
everything that replay would otherwise rebuild. Imports ``ledger.format``.
"""
