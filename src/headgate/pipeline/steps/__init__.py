"""Steps of the pipeline: functions ``DataFrame -> DataFrame``, one module for each subject.

A step brings the rows of a subject together and hands them to a pure kernel over Arrow tables. It
may import ``kernels`` and ``tables``. It takes no session, touches no store and collects nothing.
"""
