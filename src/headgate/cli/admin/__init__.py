"""``headgate admin``: ``pulsar-admin``'s verbs and flags, for every route that the broker has.

A verb is a row of a table: its name, its parameters, the request that it sends and the form in
which the answer is printed. ``tenants``, ``clusters``, ``brokers``, ``namespaces``, ``topics`` and
``topic_policies`` hold the tables, ``verbs`` what a row is made of, ``command`` the command line.
"""
