"""The pure core of Sweet Spot: how much may one user contribute to a differentially private release?

Nothing here knows about Streamlit or plotting. Modules are imported by name
(``from dpcore import mean``); this file does no work. See ``dpcore/README.md`` for notation and layers.
"""
