"""What a person takes away of an answer: the content of a report, its JSON, and a script that computes it again.

Pure, and the last layer: `content` (labelled numbers, and what may be published of them), `document` (JSON),
`markup` (the pages' Markdown and LaTeX as HTML or text), `literals` and `script` (Python that imports `dpcore`),
`scaffold` (what every script begins with). What a script computes is a file of its question, ``script.py``.
"""
