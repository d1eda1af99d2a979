"""How commands connect to a broker: URLs, credentials and TLS.

``client_config`` has the value, by the keys of Pulsar's ``client.conf``; ``sources`` finds it in
options, the environment, a file or a profile, ``options`` declares the options of all commands.
``authentication``, ``oauth2`` and ``tls`` make of it what a request needs, and ``refusals`` says
why a broker refuses. Commands import ``options`` and ``client_config``;
:mod:`headgate.cli.admin_client` imports the rest.
"""
