"""The command line: thin commands that load their modules when they run.

``headgate --help`` must not load the broker, ``headgate standalone`` must not load Spark.
"""

from headgate.cli.group import main

__all__ = ["main"]
