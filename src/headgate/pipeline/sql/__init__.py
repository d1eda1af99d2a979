"""The SQL of the tables and views, written once for all engines. No Spark.

``dialect`` has what differs between engines, ``columns`` the typed columns of each table,
``view_texts`` the text of each view, ``script`` the ``CREATE VIEW`` statements of a folder, and
``statement`` looks at a user's query.
"""
