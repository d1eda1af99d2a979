"""Long work of the broker, in slices between which the loop serves clients.

``units`` says what work costs, and ``scheduler`` gives each iteration of the loop one slice of it.
May import the engine and base.
"""
