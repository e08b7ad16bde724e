"""What a person takes away of an answer: the content of a report, its JSON, and a script that computes it again.

Pure, and the last layer: `content` (labelled numbers, and what may be published of them), `document` (JSON),
`markup` (the pages' Markdown and LaTeX as HTML or text), `literals` and `script` (Python that imports `dpcore`).
"""
