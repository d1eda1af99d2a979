"""A view of a broker's answers that is drawn again and again, with keys.

``screen`` has the loop, over a terminal and a poller that are its arguments. ``terminal`` is the
real one, with ``keys`` to decode what people press; ``poller`` asks the admin API in a thread, so
that keys act while a broker is slow. ``text_view`` shows an answer as the text of a command.
"""
