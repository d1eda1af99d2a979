"""One sentence for an operator about each finding of the laws.

Broker, command line and pipeline print the same ones. Pure: imports every other law, and no law
imports a sentence.
"""
