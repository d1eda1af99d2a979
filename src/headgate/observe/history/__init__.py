"""The broker's memory of the last hour, from which explain answers without telemetry.

``tracks`` keeps what each subscription did, as ``points`` that a ``grid`` thins out with age and
from which ``backlog_phase`` finds when a backlog began; ``parked`` keeps how long messages waited.
"""
