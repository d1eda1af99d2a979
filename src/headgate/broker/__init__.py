"""The broker on asyncio: it carries out the engine's decisions on sockets, disk and timers.

``service`` composes one broker of its parts and runs the turns of its event loop. ``server`` and
``connection`` speak the binary protocol, with the handlers of :mod:`headgate.broker.commands`.
``registry`` and ``subscriptions`` create, load and delete topics and subscriptions; ``sweeps`` does
the periodic work. A part gets what it uses when it is made, never the whole broker. May be imported
here: control, storage, policy, engine, wire, ledger, metadata, flow, base; not observe or facade,
which know the broker.
"""
