"""Reports of an answer to take away: their content, JSON, and a script that computes the answer again.

Pure, and the last layer: `content` (labelled numbers, and what may be published of them), `document` (JSON),
`markup` (the pages' Markdown and LaTeX as HTML or text), `script` (Python that imports `dpcore`).
"""
