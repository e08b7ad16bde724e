"""Settings as TOML: what is written is read as it was, and what cannot be read gets a sentence."""

import tomllib
from dataclasses import replace

import pytest

import dpcore as ss
from dpcore.common.checks import InvalidInput
from dpcore.common.privacy import Disclosure
from dpcore.data import samples
from dpcore.data.tables import FileLayout, TableLayout
from dpcore.report import settings_file
from dpcore.report.settings_file import can_read_again, list_columns, read_settings, write_settings

NASTY = (
    'a "b"',
    "c\\\\d",
    "two\nlines\r\n",
    "\x7f\x00\x1b",
    "Größe ≥ 5 \u2028 \U0001f600",
    "'''",
    "#",
    " x ; y ",
    "",
)
SHOP = samples.load("shop-events")


def test_what_is_written_is_read_as_it_was():
    settings = {
        "epsilon": 0.1 + 0.2,
        "lower": -1e-300,
        "upper": 1e22,
        "runs": 10**6,
        "smooth": True,
        "levels": {name: list(NASTY) for name in NASTY},
        "names": list(NASTY),
        "none": None,
    }
    for name in NASTY:
        settings_read = tomllib.loads(write_settings(("f", settings | {"name": name}), "f", SHOP, ()))
        assert settings_read.pop("name") == name
        assert settings_read == {key: value for key, value in settings.items() if value is not None}


def test_columns_are_those_that_the_data_were_read_from():
    assert list_columns(SHOP) == {
        "user": "user_id",
        "value": "amount",
        "group": "product",
        "disclosure": "public",
    }
    pairs = replace(SHOP.pairs, further_columns=NASTY[:2])
    nasty = replace(SHOP, privacy_unit=NASTY[:3], pairs=pairs, disclosure=Disclosure.PRIVATE)
    assert list_columns(nasty) == {
        "user": list(NASTY[:3]),
        "value": "amount",
        "group": ["product", *NASTY[:2]],
    }
    settings_read = tomllib.loads(write_settings(("plan_bounds", {}), "plan", nasty, ("user", "value")))
    assert settings_read == {"user": list(NASTY[:3]), "value": "amount"}
    assert list_columns(ss.count_bound([1, 2], epsilon=1).data) == {}
    # Names that the file does not hold, and rows without a user that count, no call knows of.
    assert can_read_again(SHOP)
    for layout in (
        TableLayout((FileLayout("a.csv", names=("x", "y")),)),
        TableLayout((FileLayout("a.csv"),), missing_is_a_user=True),
    ):
        assert not can_read_again(replace(SHOP, layout=layout))
    assert can_read_again(replace(SHOP, layout=TableLayout((FileLayout("a.csv"),))))


def test_what_cannot_be_read_is_a_sentence(tmp_path, monkeypatch):
    file = tmp_path / "a.toml"
    for content, message in (
        (b"epsilon = ", "is no TOML"),
        (b"a = " + b"[" * 5000, "is no TOML"),
        (b"a = '\xff'", "UTF-8"),
        (b"a = " + b"9" * 5000, "is no TOML"),
        (b"a" + b".a" * 20 + b" = 1", "a key of more than 20 parts"),
        (b"[" + b"'a' . " * 20 + b'"b"]', "a key of more than 20 parts"),
        (b"a = {" + b'"a.b".' * 20 + b"b = 1}", "a key of more than 20 parts"),
    ):
        file.write_bytes(content)
        with pytest.raises(InvalidInput, match=rf"The file a\.toml .*{message}"):
            read_settings(file)
    nested = "a" + ".a" * 19
    file.write_text(f"{nested} = [0.1, 0.2, 0.3]\nb = [{', '.join(['0.5'] * 99)}]\nc = '{'Dr. A. B. ' * 9}'")
    assert set(read_settings(file)) == {"a", "b", "c"}
    file.write_bytes(b"\xef\xbb\xbfepsilon = 1\r\n")  # As Windows writes it.
    assert read_settings(file) == {"epsilon": 1}
    with pytest.raises(InvalidInput, match=r"The file none\.toml cannot be read"):
        read_settings(tmp_path / "none.toml")
    monkeypatch.setattr(settings_file, "MAX_BYTES", 3)
    with pytest.raises(InvalidInput, match="more than 3 bytes"):
        read_settings(file)


def test_settings_of_any_kind_get_all_their_sentences():
    events = str(samples.FOLDER / "shop_events.csv")
    wrong = tomllib.loads(
        "user = 3\nvalue = ['amount']\ngroup = 1979-05-27\ndisclosure = 1\nepsilon = {b = 2}\nlower = {a = 1}\n"
        "upper = 07:32:00\nlines = 5\nmechanism = 1.5\n[plan]\nepsilon = 1"
    )
    with pytest.raises(InvalidInput) as refused:
        ss.plan_bounds(events, **wrong)
    for sentence_part in ("Mechanism must be one of", "no setting 'plan'", "Disclosure must be"):
        assert sentence_part in str(refused.value)
    with pytest.raises(InvalidInput) as refused:
        ss.plan_bounds(
            events,
            **{key: wrong[key] for key in ("user", "value", "group", "epsilon", "lower", "upper", "lines")},
        )
    for sentence_part in (
        "User must be the name",
        "Value must be the name",
        "Group must be the name",
        "Epsilon must",
        "Line 1 cannot be read; got '5'",
    ):
        assert sentence_part in str(refused.value)
