"""``python -m dpcore`` is ``sweet-spot``."""

import sys

from dpcore.cli.command import run

if __name__ == "__main__":
    sys.exit(run())
