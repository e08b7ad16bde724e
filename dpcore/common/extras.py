"""Libraries that only some answers need: the extras of the package."""

from __future__ import annotations

import importlib
from typing import Any

from dpcore.common.checks import refuse

EXTRA_BY_MODULE = {"opendp": "release", "plotly": "plots", "openpyxl": "excel", "cvxpy": "check"}
"""Library to the extra that brings it; ``app`` brings all of them, and Streamlit."""
_PURPOSE_BY_EXTRA = {
    "release": "Noise that is released comes from",
    "plots": "Figures and reports are drawn with",
    "excel": "Workbooks are read with",
    "check": "This comparison is made with",
}


def import_extra(library_name: str) -> Any:
    """Import a library of `EXTRA_BY_MODULE`; return the module.

    Raises:
        InvalidInput: It is not installed; the sentence says how to install it.
    """
    try:
        return importlib.import_module(library_name)
    except ModuleNotFoundError as error:
        extra_name = EXTRA_BY_MODULE[library_name]
        message = f"{_PURPOSE_BY_EXTRA[extra_name]} {library_name}, which is not installed"
        raise refuse(
            message, remedy=f"Install the extra `{extra_name}`: pip install '<wheel>[{extra_name}]'"
        ) from error
