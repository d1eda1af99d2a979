"""A folder of PYTHONPATH for Spark's Python processes: Python runs its ``sitecustomize`` at their
start. Imports the standard library alone, because it runs before every other import."""
