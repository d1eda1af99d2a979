"""The controller of adaptive publish throttling.

``adaptive`` runs its cycles, with ``adaptive_inputs`` for the law, ``memory`` for the pressure and
``adaptive_logger`` for its lines in the log. May import ``policy``, ``engine``, ``flow`` and
``base``.
"""
