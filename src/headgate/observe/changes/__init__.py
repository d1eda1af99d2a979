"""What changed in the last hour: policies, clients, topics, the broker.

``admin_changes`` listens to the audit log, ``client_changes`` to the engine's clients,
``adaptive_changes`` to the adaptive controller; each keeps a bounded history. ``change_history``
gives reports what concerns a topic. ``policy_values`` words the values of policies. Nothing here is
called for a message.
"""
