"""The Grafana boards of ``deploy/grafana/``, made of code so that tests can ask what they show.

``panels`` makes the parts of a board, ``selectors`` has the labels and variables of the queries,
``alert_rules`` reads the rules of ``deploy/prometheus/``. Each other module is one board.
"""
