"""Handlers of the commands of the binary protocol: one module for each group of commands.

A handler gets the connection as a protocol (:mod:`headgate.broker.commands.ports`). The parts of
the broker that it uses are handed to it when it is made. Handlers import the modules of
``headgate.broker`` that they use, but neither ``service`` nor those of ``connection/``.
"""
