"""The commands of ``headgate pipeline``.

``command`` lists them, ``common`` has the options that they share, and each other module has one
command. The work is in ``headgate.pipeline``; a command starts Spark only if it needs it.
"""
