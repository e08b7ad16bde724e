"""What every test shares: fresh Streamlit caches, and the Hypothesis profiles."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

# Timings on a busy machine are not a property of the code: no deadline, and examples may be slow to draw.
# A landing must not depend on luck, so the same examples come in every run. `make test-long` searches afresh, with
# many times the examples; what it finds becomes an explicit `@example` beside the mend.
settings.register_profile(
    "landing", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, print_blob=True
)
settings.register_profile("search", settings.get_profile("landing"), derandomize=False)
SEARCHING = os.environ.get("SWEETSPOT_SEARCH", "")
settings.load_profile("search" if SEARCHING else "landing")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """While searching, as many times the examples that each test asks for as ``SWEETSPOT_SEARCH`` says."""
    if not SEARCHING:
        return
    for test in {item.obj for item in items if hasattr(getattr(item, "obj", None), "hypothesis")}:
        asked = getattr(test, "_hypothesis_internal_use_settings", settings.default)
        test._hypothesis_internal_use_settings = settings(
            asked, max_examples=asked.max_examples * int(SEARCHING)
        )


@pytest.fixture(autouse=True)
def fresh_streamlit_caches() -> None:
    """A page test must not be answered from the cache of the one before it."""
    streamlit = sys.modules.get("streamlit")
    if streamlit is not None:
        streamlit.cache_data.clear()
        streamlit.cache_resource.clear()
