"""``headgate pipeline upgrade``: a folder of an earlier release gets the tables of this one.

``plan`` finds what is missing, from the files themselves, and ``job`` does it.
"""
