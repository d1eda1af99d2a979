"""Long work of the broker, in slices between which the loop serves clients.

``scheduler`` gives each iteration of the loop one slice of it, counted in the units of
:mod:`headgate.base.work_units`.
May import the engine and base.
"""
