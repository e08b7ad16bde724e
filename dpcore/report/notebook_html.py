"""An answer as the HTML that a notebook shows."""

from __future__ import annotations

import html
from collections.abc import Sequence

from dpcore.answer import Answer
from dpcore.report.markup import to_plain_text


def write_notebook_html(answer: Answer, notes: Sequence[str]) -> str:
    """Write headline, detail, numbers, notes, folded assumptions and label as HTML, with every text escaped."""

    def escape(text: str) -> str:
        """Convert Markdown to plain text, and escape it for HTML."""
        return html.escape(to_plain_text(text))

    rows_html = "".join(
        f"<tr><td>{escape(n.label)}</td><td><b>{escape(n.text)}</b></td><td>{escape(n.note)}</td></tr>"
        for n in answer.numbers
    )
    sentence_by_name = {"Verdict": answer.verdict_sentence, "Near-optimal": answer.near_optimal}
    named_html = "".join(f"<p>{name}: {escape(text)}</p>" for name, text in sentence_by_name.items() if text)
    notes_html = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    assumptions_html = "".join(f"<li>{escape(sentence)}.</li>" for sentence in answer.all_assumptions)
    return (
        f"<div><h3>{escape(answer.headline)}</h3><p>{escape(answer.detail)}</p><table>{rows_html}</table>{named_html}{notes_html}"
        f"<details><summary>What is assumed</summary><ul>{assumptions_html}</ul></details>"
        f"<p><i>{escape(answer.disclosure.label)}</i></p></div>"
    )
