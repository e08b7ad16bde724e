"""Files to be counted."""

import pytest


@pytest.fixture
def put(tmp_path):
    """Writes a file and returns its path."""

    def write(content, name="file.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
