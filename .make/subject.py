"""Check the subject of a commit message: at most 72 characters, no full stop, and a blank line after it."""

from __future__ import annotations

import sys
from pathlib import Path

MAX_LENGTH = 72


def find_problem(message: str) -> str:
    """Return what is wrong with a commit message's subject, a sentence; empty if nothing is."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if not subject.strip():
        return "The subject is empty."
    if len(subject) > MAX_LENGTH:
        return f"The subject has {len(subject)} characters; at most {MAX_LENGTH} are read in a list."
    if subject.endswith("."):
        return "The subject ends with a full stop."
    if len(lines) > 1 and lines[1].strip():
        return "A blank line must follow the subject."
    return ""


if __name__ == "__main__":
    sys.exit(find_problem(Path(sys.argv[1]).read_text(encoding="utf-8")) or 0)
