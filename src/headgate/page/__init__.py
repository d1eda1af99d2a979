"""The page that shows at a glance what holds backlogs.

It consists of static files and the application that serves them below ``/headgate/`` of an admin
port.

The files (``static/``) know only the public REST API, so broker and agent serve the same ones.
``files`` holds them in memory, ``app`` answers requests. May import ``base``.
"""
