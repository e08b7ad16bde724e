"""Count contributions per user in data of any size: files through DuckDB, engines through Ibis.

    source = counting.open_files(["events.parquet"])
    counted = counting.count(source, source.roles, Disclosure.PRIVATE)
    counted.dataset.histogram

From the shell: ``python -m dpcore.counting --from events.parquet --user user_id --to histogram.csv``.
"""

from __future__ import annotations

from dpcore.common.workspace import Workspace
from dpcore.counting.count import CountResult, build_dataset, count
from dpcore.counting.duck import MEMORY_LIMIT, StoppedError
from dpcore.counting.engines import ENGINES, can_bin_values, connect, count_table, open_table, write_recipe
from dpcore.counting.files import MAX_SMALL_BYTES, Source, open_files
from dpcore.counting.formats import MemoryFile
from dpcore.counting.text import read_table
