"""``python -m sweet_spot`` is ``sweet-spot``."""

import sys

from sweet_spot.command import main

if __name__ == "__main__":
    sys.exit(main())
