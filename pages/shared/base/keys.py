"""The shell's own keys of the browser session. A question's are `Question.get_key`: its name, a point, the field."""

from __future__ import annotations

# What is loaded, and how a link can name it (pages.shared.session.session).
LOADED_DATA = "loaded_data"
# What was spent on each set of data.
LEDGERS = "ledgers"
# What a click on Save session writes.
SESSION_SNAPSHOT = "session_holder"
# What was pinned, and what the current page offers to pin; set by the page.
PINS = "pins"
PIN_BUILDER = "pin_offered"
# Counts loads, so that widgets which depend on the data start afresh with new data.
DATA_VERSION = "data_version"
# Set once the link of this session has been read, and what was wrong with it.
IS_LINK_APPLIED = "link_read"
LINK_PROBLEMS = "link_problems"
# A public list of items: name by id (pages.shared.data.uploads).
ITEM_NAMES = "item_names"
# What the link said of choices, by session key.
LINK_CHOICES = "link_said"
# What a link or a session file said of data that it did not bring, by session key: it stays when these are loaded.
AWAITED_VALUES = "awaited_settings"
# The parameters that the current page offers to a link; set by the page, read by the shell.
PAGE_PARAMETERS = "page_parameters"
# Answer, shown card and the card's key of each release that was shown on these data, by page, the newest last.
SHOWN_RELEASES = "shown_releases"
# The last entries that a page had an answer to: its name, the version of the data, and the value of each field by key.
LAST_ANSWERED_VALUES = "answered_entries"
# What is wrong with fields that the page's question goes on without, by session key; set by the page.
UNUSED_VALUE_PROBLEMS = "aside"

# Shell.
# What the sidebar named as the data of each page that was open, by page; empty for the data in use.
DATA_NAME_BY_PAGE = "shown_data"
EPSILON = "epsilon"
EPSILON_SLIDER = "epsilon_slider"
EPSILON_PAGE = "epsilon_page"

# True if plots have the papers' symbols in place of words, on all pages that have some.
PAPER_NOTATION = "paper_notation"

# By which figures reach the browser before the rest of the page (pages.shared.speed).
FIGURE_CHANNEL = "figures_ahead"

# The tour over the pages with all that it put aside, and the page that it goes to next (pages.shared.session.tour).
TOUR = "tour"
TOUR_DESTINATION = "tour_goes_to"

# Which files were put to use, and what their columns were taken for (pages.shared.session.own_tables).
KNOWN_FILES = "known_files"

# Whether the app is shown on a projector.
IS_PRESENTING = "presenting"

# The button of an answer card that opens its code: the card's own key goes before.
CODE_BUTTON_SUFFIX = "_code"
# Which dialog was asked for, until it is open; and whether one is open (pages.shared.base.page_run).
REQUESTED_DIALOG = "dialog_asked"
IS_DIALOG_OPEN = "dialog_open"
# The library that a person chose, one for all cards; and what is applied, with the card's key behind.
CODE_LIBRARY, CODE_PAGE_LIBRARY = "code_library", "code_program"
CODE_FORM_PREFIX = "code_form_"

_DATA_KEYS = LOADED_DATA, LEDGERS, DATA_VERSION, KNOWN_FILES, TOUR
_SHELL_KEYS = IS_LINK_APPLIED, EPSILON, EPSILON_SLIDER, EPSILON_PAGE, FIGURE_CHANNEL, IS_PRESENTING
PRESERVED_KEYS = frozenset((*_DATA_KEYS, *_SHELL_KEYS, CODE_LIBRARY, CODE_PAGE_LIBRARY))
"""Keys that stay when a DP histogram replaces its source data, because none of them holds anything computed from it.

A histogram released during the tour belongs to the tour's data. The state that the tour set aside stays.
"""
