"""The broker's memory of the last hour, from which explain answers without telemetry.

``tracks`` keeps what each subscription did, ``parked`` how long published messages waited.
"""
