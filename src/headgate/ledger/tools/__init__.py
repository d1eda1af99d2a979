"""Tools for the files of a log that no broker has open.

``verify`` reads every byte and names damage, ``dump`` lists records. Both read records with
``walk``, a second implementation beside ``recovery``, so that an error in one of them shows.
Imports ``ledger.recovery`` (correction of single bits), ``ledger.index`` and ``ledger.format``.
"""
