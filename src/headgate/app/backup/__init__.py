"""Backups of a data directory, and their restore.

A backup folder holds *generations*, each a complete state of a data directory, over a common store
of files named after their content. ``plan`` decides what to copy and what to remove; ``manifest``
and ``folder`` are the files of a backup folder; ``copying`` copies one file at a bounded rate;
``sources`` lists the files of a data directory; ``take`` and ``restore`` do the work; ``rebind``
makes a restored directory one of its own.
"""
