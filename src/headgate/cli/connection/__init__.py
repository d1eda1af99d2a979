"""The options with which commands name a broker.

``sources`` finds a :class:`headgate.access.client_config.ClientConfig` in options, the environment,
a file or a profile; ``options`` declares the options of all commands.
"""
