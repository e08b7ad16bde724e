"""``python -m sweet_spot`` is ``sweet-spot``."""

import sys

from sweet_spot.command import run

if __name__ == "__main__":
    sys.exit(run())
