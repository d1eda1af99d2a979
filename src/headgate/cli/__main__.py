"""``python -m headgate.cli``: the same as ``headgate``."""

from headgate.cli.group import main

if __name__ == "__main__":
    main(prog_name="headgate")
