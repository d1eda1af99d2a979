"""The command line: thin commands, each loading only what it needs when it runs.

``headgate --help`` must not load the broker, ``headgate standalone`` must not load Spark.
"""

from headgate.cli.group import main

__all__ = ["main"]
