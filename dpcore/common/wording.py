"""Numbers in sentences: three significant digits, thousands separated, percentages with a no-break space.

And text from outside made safe for Markdown (`plain`).

What a person entered keeps all its digits (`entered`): an epsilon must not look smaller than it is.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

PERCENT = "\N{NO-BREAK SPACE}%"
"""What stands after a percentage: a line never breaks before its sign."""


def number(value: float, digits: int = 3) -> str:
    """``value`` to ``digits`` significant digits; whole numbers below 1e15 in full, with separators."""
    if not math.isfinite(value):
        return "not defined" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}".replace("-", "−")
    magnitude = math.floor(math.log10(abs(value)))
    if -4 <= magnitude < digits + 3:
        text = f"{value:,.{max(digits - 1 - magnitude, 0)}f}"
    else:
        text = f"{value:.{digits - 1}e}"
    return text.replace("-", "−")


def capital(words: str) -> str:
    """With a capital first letter; one of a formula stays as it is: a capital ε looks like an E, a Σ means a sum."""
    return (words[:1].upper() if words[:1].isascii() else words[:1]) + words[1:]


def apart(one: float, other: float, digits: int = 4) -> tuple[str, str]:
    """Two numbers with as many digits, at least so many, as it takes to tell them apart; equal ones alike."""
    for more in range(digits, 18):
        texts = number(one, more), number(other, more)
        if one == other or _value(texts[0]) != _value(texts[1]):
            return texts
    return repr(one), repr(other)


def _value(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-").replace("∞", "inf").replace("not defined", "nan"))


def digits(value: float) -> str:
    """All digits of ``value``, as a program reads them: ``0.00001``, ``1234.5``, ``1e-7``.

    Only what a sum's rounding left in the last two units (0.1 + 0.2) is not shown.
    """
    if not math.isfinite(value) or value == 0.0:
        return "0" if value == 0.0 else repr(float(value))
    short = f"{value:.15g}"
    exact = Decimal(short if abs(float(short) - value) <= 2.0 * math.ulp(value) else repr(float(value)))
    if 1e-6 <= abs(exact) < 1e15:
        text = f"{exact:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, _, exponent = f"{exact.normalize():e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def entered(value: float) -> str:
    """A number that a person entered, with all its digits: ``0.00001``, ``1,234.5``, ``1e−7``."""
    if not math.isfinite(value):
        return number(value)
    whole, point, rest = digits(value).partition(".")
    if "e" not in whole:
        whole = f"{int(whole):,}" if whole not in ("-0", "0") else whole
    return f"{whole}{point}{rest}".replace("-", "−")


def percent(share: float, digits: int = 2) -> str:
    """A share of 1 in per cent to ``digits`` significant digits: 0.0123 -> ``1.2 %``."""
    if not math.isfinite(share):
        return number(share)
    value = 100.0 * share
    if value == 0.0:
        return f"0{PERCENT}"
    if abs(value) < 1e-4:
        return f"{value:.{digits - 1}e}{PERCENT}".replace("-", "−")
    # Never round a part up to the whole: 99.96 % must not read as 100 %.
    whole = 100.0 - 1e-9 > value > 99.0
    places = 2 if whole else max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    text = f"{value:,.{places}f}"
    return f"{'99.99' if whole and text == '100.00' else text}{PERCENT}".replace("-", "−")


def counted(count: float, singular: str, plural: str | None = None) -> str:
    """``1 row``, ``1,234 rows``."""
    return f"{number(count)} {agreeing(count, singular, plural or singular + 's')}"


def agreeing(count: float, singular: str, plural: str) -> str:
    """The word that goes with so many: ``lies`` with 1 user, ``lie`` with 2."""
    return singular if count == 1 else plural


def change(value: float, reference: float) -> str:
    """How far ``value`` lies from ``reference``: ``12 % more``, ``3.1 % less``, ``the same``, ``2.4 times``."""
    if reference == 0.0 or not math.isfinite(value / reference):
        return "not comparable"
    ratio = value / reference
    if abs(ratio - 1.0) < 5e-5:
        return "the same"
    if ratio >= 2.0:
        return f"{number(ratio, 2)} times as much"
    return f"{percent(ratio - 1.0)} more" if ratio > 1.0 else f"{percent(1.0 - ratio)} less"


# --- Text from outside (names of files and columns) -------------------------------------------------------------------

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$:&])")
# Addresses become links even where they are escaped; an invisible word joiner inside prevents it.
_ADDRESS = re.compile(r"https?:(?=//)|www(?=\.)|@", re.IGNORECASE)
_JOINER = "\N{WORD JOINER}"


def plain(text: str, most: int = 80) -> str:
    """``text`` as literal characters in Streamlit's Markdown, cut to ``most`` characters."""
    shown = " ".join(text.split())
    shown = shown if len(shown) <= most else shown[: most - 1] + "…"
    return _SPECIAL.sub(r"\\\1", _ADDRESS.sub(rf"\g<0>{_JOINER}", shown))
