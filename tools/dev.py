"""Entry of ``./dev``: hands the command line to :mod:`devkit`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from devkit.commands import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
