"""The broker's memory of the last hour, from which explain answers without telemetry.

``tracks`` keeps what each subscription did, as ``points`` that undergo ``downsampling`` with age.
``backlog_phase`` finds when a backlog began. ``parked`` keeps how long SENDs were parked.
"""
