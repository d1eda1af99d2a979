"""The broker's memory of the last hour, from which explain answers without telemetry.

``tracks`` keeps what each subscription did, of which ``present`` makes points. ``parked`` keeps how
long SENDs were parked.
"""
