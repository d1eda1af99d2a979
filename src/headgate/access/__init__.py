"""How commands and the agent reach an admin API: its URL, credentials and TLS.

``client_config`` has the value, by the keys of Pulsar's ``client.conf``. ``authentication``,
``oauth2`` and ``tls`` make of it what a request needs, ``admin_api`` sends one, and ``refusals``
says why a broker refuses. May import ``security`` and ``base``.
"""
