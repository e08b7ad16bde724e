"""Count contributions per user in data of any size: files through DuckDB, engines through Ibis.

    source = counting.open_files(["events.parquet"])
    counted = counting.count(source, source.roles, Disclosure.PRIVATE)
    counted.dataset.histogram

From the shell: ``python -m dpcore.counting --from events.parquet --user user_id --to histogram.csv``.
"""

from __future__ import annotations

from dpcore.common.workspace import Workspace, remove_abandoned
from dpcore.counting.duck import MEMORY_LIMIT
from dpcore.counting.engines import ENGINES, Engine, connect, open_table
from dpcore.counting.files import HELD_BYTES, SMALL_BYTES, Source, open_files
from dpcore.counting.held import Held
from dpcore.counting.recipes import Recipe, recipe
from dpcore.counting.run import Counted, Heavy, build_dataset, count, count_table, heaviest
from dpcore.counting.running import StoppedError
from dpcore.counting.text import read_table

__all__ = [
    "ENGINES",
    "HELD_BYTES",
    "MEMORY_LIMIT",
    "SMALL_BYTES",
    "Counted",
    "Engine",
    "Heavy",
    "Held",
    "Recipe",
    "Source",
    "StoppedError",
    "Workspace",
    "build_dataset",
    "connect",
    "count",
    "count_table",
    "heaviest",
    "open_files",
    "open_table",
    "read_table",
    "recipe",
    "remove_abandoned",
]
