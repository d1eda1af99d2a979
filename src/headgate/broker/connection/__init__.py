"""One client's connection: bytes in, commands to their handlers, frames out in each turn.

``connection`` is the asyncio protocol. Beside it stand its producers and consumers (the engine's
ports), its bounds, its keep-alive, and the replies that refuse a command. May import the parts of
the broker that it uses, but neither ``broker.commands``, whose handlers it receives, nor
``broker.service``.
"""
