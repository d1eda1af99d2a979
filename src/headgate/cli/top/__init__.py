"""The command ``headgate top``: the worst backlogs and their causes, live in a terminal.

``command`` connects and runs the view. ``view`` ties ``choices`` (what the user chose with keys) to
``table``, which makes the lines of a screen from an answer; both are pure.
"""
