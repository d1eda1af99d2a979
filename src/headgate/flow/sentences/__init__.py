"""One sentence for an operator about each finding of the laws.

Pure: imports every other law; no law imports a sentence.
"""
