"""Build the documentation site in docs/site of the Markdown files here and of the docstrings (`make docs`)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import latex2mathml.converter
from docutils import nodes

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import dpcore  # noqa: E402

project = "Sweet Spot"
release = version = dpcore.__version__
author = "The Sweet Spot authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/api.rst",
    "dpcore/README.md",
    "sample_data/README.md",
    "benchmarks/*.md",
]
exclude_patterns = [".*", "docs/site"]
myst_fence_as_directive = {"math"}
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
html_theme = "sphinx_book_theme"
html_title = f"Sweet Spot {release}"
html_theme_options = {
    "show_toc_level": 2,
    "use_download_button": False,
    "use_fullscreen_button": False,
    "navbar_persistent": [],
}
html_math_renderer = "mathml"
html_copy_source = False
html_static_path = ["site.css", "sort_tables.js"]
html_css_files = ["site.css"]
html_js_files = ["sort_tables.js"]

PAGES_BY_SECTION = {
    "Tutorial": ("install", "start", "python"),
    "How to": ("epsilon", "publish", "plan", "engines", "hosting", "teaching"),
    "Reference": ("tables", "errors", "command", "libraries", "report", "glossary", "limits", "api"),
    "Background": (
        "concepts",
        "privacy",
        "mechanisms",
        "security",
        "mean",
        "gap",
        "papers",
        "papers_data",
    ),
}
FURTHER_PAGES = (
    "docs/README",
    "CONTRIBUTING",
    "CHANGELOG",
    "dpcore/README",
    "sample_data/README",
    "benchmarks/models",
    "benchmarks/training",
    "benchmarks/factorisation",
    "benchmarks/programs",
    "benchmarks/clamped_users",
    "benchmarks/private",
    "benchmarks/first_look",
)


def _convert_math(translator: Any, node: nodes.Element) -> None:
    """Write a formula as MathML, which browsers draw themselves: no script, and no request."""
    if isinstance(node, nodes.math_block):
        translator.body.append(f"<p>{latex2mathml.converter.convert(node.astext(), display='block')}</p>")
    else:
        translator.body.append(latex2mathml.converter.convert(node.astext()))
    raise nodes.SkipNode


def _list_pages(app: Any, page_name: str, source: list[str]) -> None:
    """Add the pages of each section to the contents, where a reader of the Markdown file sees nothing of it."""
    if page_name == root_doc:
        paths_by_section = {
            title: [f"docs/{name}" for name in names] for title, names in PAGES_BY_SECTION.items()
        }
        for title, paths in {**paths_by_section, "Further": FURTHER_PAGES}.items():
            source[0] += "\n".join(
                ("\n```{toctree}", ":hidden:", f":caption: {title}", "", *paths, "```", "")
            )


def _escape_bars(app: Any, object_kind: str, name: str, content: Any, options: Any, lines: list[str]) -> None:
    """Keep the bars of an absolute value, which would name a substitution."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


def setup(app: Any) -> None:
    """Register the formulas and the contents."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_convert_math, None), block_renderers=(_convert_math, None)
    )
    app.connect("source-read", _list_pages)
    app.connect("autodoc-process-docstring", _escape_bars)
