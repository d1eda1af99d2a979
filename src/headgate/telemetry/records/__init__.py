"""The telemetry topic: from the engine's events and state to published records.

``sampler`` follows the engine, ``subjects``, ``publishing`` and ``limiters`` keep one track for
each subject of a row, the event modules make rows of what happened, ``row_buffer`` gathers the
rows of a window, ``publisher`` publishes all.
"""
