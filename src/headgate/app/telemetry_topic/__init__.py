"""Publishing an agent's telemetry to a topic, by a process of its own.

``process`` is the producer that ``agent/record_topic`` uses; ``worker`` is the program that it
runs, which has ``pulsar-client``; ``pipe`` is what they tell each other.
"""
