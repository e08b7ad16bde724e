"""A PostgreSQL server (started by .make/engines.py) and a Spark session; without them nothing here is collected."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("SWEETSPOT_ENGINES") else ["test_*.py"]
