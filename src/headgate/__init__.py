"""Headgate: flow control that explains itself, for Apache Pulsar.

The packages below this one are layers; ``docs/ARCHITECTURE.md`` draws them and
``tests/tidy/test_layers.py`` holds them apart. Nothing imports this root package
except for ``__version__``.
"""

__version__ = "0.1.0"
