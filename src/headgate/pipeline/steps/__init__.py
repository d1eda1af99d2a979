"""Steps of the pipeline: functions ``DataFrame -> DataFrame``, one module for each subject.

A step brings the rows of a subject together, and ``kernel_runner`` hands them to a pure kernel over
Arrow tables. Steps may import ``kernels``, ``tables``, ``record``, ``flow`` and ``base``. They take
no session, touch no store and collect nothing.
"""
