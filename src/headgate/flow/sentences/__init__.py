"""Sentences for operators: one about each finding of the laws.

Broker, command line and pipeline print the same sentences. Pure: imports the other laws, and no law
imports a sentence.
"""
