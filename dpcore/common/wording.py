"""Numbers in sentences: three significant digits, thousands separated, percentages with a no-break space.

`escape_text` makes text from outside safe for Markdown.

`format_entered` keeps all digits of an entered number: an epsilon must not look smaller than it is.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

PERCENT = "\N{NO-BREAK SPACE}%"
"""The end of a percentage: a line never breaks before its sign."""


def format_number(number_value: float, num_digits: int = 3) -> str:
    """Format ``number_value`` with ``num_digits`` significant digits; integers below 1e15 in full, with separators."""
    if not math.isfinite(number_value):
        return "not defined" if math.isnan(number_value) else ("∞" if number_value > 0 else "−∞")
    if number_value == int(number_value) and abs(number_value) < 1e15:
        return f"{int(number_value):,}".replace("-", "−")
    decimal_exponent = math.floor(math.log10(abs(number_value)))
    if -4 <= decimal_exponent < num_digits + 3:
        number_text = f"{number_value:,.{max(num_digits - 1 - decimal_exponent, 0)}f}"
    else:
        number_text = f"{number_value:.{num_digits - 1}e}"
    return number_text.replace("-", "−")


def capitalise(text: str) -> str:
    """Capitalise the first letter if it is of ASCII: a capital ε looks like an E, a Σ means a sum."""
    return (text[:1].upper() if text[:1].isascii() else text[:1]) + text[1:]


def format_digits(value: float) -> str:
    """Format all digits of a number as a program reads them: ``0.00001``, ``1234.5``, ``1e-7``.

    The rounding of a sum in the last two units (0.1 + 0.2) is not shown.
    """
    if not math.isfinite(value) or value == 0.0:
        return "0" if value == 0.0 else repr(float(value))
    rounded_text = f"{value:.15g}"
    is_rounding = abs(float(rounded_text) - value) <= 2.0 * math.ulp(value)
    exact_decimal = Decimal(rounded_text if is_rounding else repr(float(value)))
    if 1e-6 <= abs(exact_decimal) < 1e15:
        decimal_text = f"{exact_decimal:f}"
        return decimal_text.rstrip("0").rstrip(".") if "." in decimal_text else decimal_text
    mantissa_text, _, exponent_text = f"{exact_decimal.normalize():e}".partition("e")
    return f"{mantissa_text}e{int(exponent_text)}"


def format_entered(value: float) -> str:
    """Format an entered number with all its digits: ``0.00001``, ``1,234.5``, ``1e−7``."""
    if not math.isfinite(value):
        return format_number(value)
    integer_text, decimal_point, fraction_text = format_digits(value).partition(".")
    if "e" not in integer_text:
        integer_text = f"{int(integer_text):,}" if integer_text not in ("-0", "0") else integer_text
    return f"{integer_text}{decimal_point}{fraction_text}".replace("-", "−")


def format_percent(share: float, num_digits: int = 2) -> str:
    """Format a share in percent with ``num_digits`` significant digits: 0.0123 -> ``1.2 %``."""
    if not math.isfinite(share):
        return format_number(share)
    percentage = 100.0 * share
    if percentage == 0.0:
        return f"0{PERCENT}"
    if abs(percentage) < 1e-4:
        return f"{percentage:.{num_digits - 1}e}{PERCENT}".replace("-", "−")
    # Never round a part up to the whole: 99.96 % must not read as 100 %.
    is_nearly_all = 100.0 - 1e-9 > percentage > 99.0
    num_decimals = 2 if is_nearly_all else max(num_digits - 1 - math.floor(math.log10(abs(percentage))), 0)
    percent_text = f"{percentage:,.{num_decimals}f}"
    percent_text = "99.99" if is_nearly_all and percent_text == "100.00" else percent_text
    return f"{percent_text}{PERCENT}".replace("-", "−")


def format_count(count: float, singular_noun: str, plural_noun: str | None = None) -> str:
    """Format a count with its noun: ``1 row``, ``1,234 rows``."""
    return f"{format_number(count)} {choose_word(count, singular_noun, plural_noun or singular_noun + 's')}"


def choose_word(count: float, singular_word: str, plural_word: str) -> str:
    """Choose the word that goes with a count: ``lies`` with 1 user, ``lie`` with 2."""
    return singular_word if count == 1 else plural_word


def describe_change(value: float, reference: float) -> str:
    """Write how far ``value`` is from ``reference``: ``12 % more``, ``the same``, ``2.4 times as much``.

    "not comparable" if the ratio is not finite.
    """
    if reference == 0.0 or not math.isfinite(value / reference):
        return "not comparable"
    value_ratio = value / reference
    if abs(value_ratio - 1.0) < 5e-5:
        return "the same"
    if value_ratio >= 2.0:
        return f"{format_number(value_ratio, 2)} times as much"
    return f"{format_percent(abs(value_ratio - 1.0))} {'more' if value_ratio > 1.0 else 'less'}"


# --- Text from outside (names of files and columns) -------------------------------------------------------------------

_SPECIAL_PATTERN = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$:&])")
# Addresses become links even where they are escaped; an invisible word joiner inside prevents it.
_ADDRESS_PATTERN = re.compile(r"https?:(?=//)|www(?=\.)|@", re.IGNORECASE)
_JOINER = "\N{WORD JOINER}"


def escape_text(markdown_text: str, max_characters: int = 80) -> str:
    """Cut a text to ``max_characters`` and escape it, so that Streamlit's Markdown shows it literally."""
    shortened_text = " ".join(markdown_text.split())
    if len(shortened_text) > max_characters:
        shortened_text = shortened_text[: max_characters - 1] + "…"
    return _SPECIAL_PATTERN.sub(r"\\\1", _ADDRESS_PATTERN.sub(rf"\g<0>{_JOINER}", shortened_text))
