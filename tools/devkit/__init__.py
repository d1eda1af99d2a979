"""What stands behind ``./dev``: set-up, test lanes, lint, locks and packages.

Runs before anything is installed, so it imports the standard library only. ``commands`` is the
table of commands; ``setup`` and what it uses make the environment; every other module is one
command. Nothing in ``src/`` imports it.
"""
