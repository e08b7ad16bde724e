"""``python .make`` is ``sweet-spot`` in a checkout."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:1] = [str(HERE.parent), str(HERE)]

from sweet_spot.command import run  # noqa: E402

if __name__ == "__main__":
    sys.exit(run())
