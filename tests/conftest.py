"""What every test shares: fresh Streamlit caches, and the Hypothesis profiles."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

# Timings on a busy machine are not a property of the code: no deadline, and examples may be slow to draw.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(autouse=True)
def fresh_streamlit_caches() -> None:
    """A page test must not be answered from the cache of the one before it."""
    streamlit = sys.modules.get("streamlit")
    if streamlit is not None:
        streamlit.cache_data.clear()
        streamlit.cache_resource.clear()
