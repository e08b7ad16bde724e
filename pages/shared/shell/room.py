"""How much of the window is for figures and answers: what Streamlit has no option for.

Beside a wide page Streamlit leaves 80 pixels free on either side, a fifth of what a window of 1280 has beside the
sidebar; here it is half of that. The sidebar's links take 34 pixels each, so that the data in use and *Save session*
below them would lie outside of a window 800 high; here they take 26, and are themselves 24 high, as WCAG 2.2 asks.
The names of pages start where the headings above them start, and have the 16 pixels that are free beside them:
"Learning under a bound" needs 143, in bold while it is open, and had 140. While the app is presented the page begins
right below its header: with larger type a figure would not be seen whole.
"""

from __future__ import annotations

# Streamlit's own rules have one class each, so that two conditions go before them. On paper its own hold.
STYLE = """<style>
@media screen and (min-width: 736px) {
  .stMain [data-testid="stMainBlockContainer"] { padding-inline: 2.5rem; }
  .stSidebar [data-testid="stSidebarNavLink"] { margin-block: 0; height: 1.5rem; }
  .stSidebar [data-testid="stSidebarHeader"] { height: 2.5rem; margin-bottom: 0; }
  .stSidebar [data-testid="stSidebarUserContent"] { padding-top: 0; }
  .stSidebar [data-testid="stSidebarNavSeparator"] { padding-top: 0.375rem; }
  .stSidebar [data-testid="stNavSectionHeader"] { margin-top: -0.375rem; padding-bottom: 0.125rem; }
}
.stSidebar [data-testid="stSidebarNavLink"] { margin-inline: -0.5rem; }
</style>"""

PRESENTING = """<style>
.stMain [data-testid="stMainBlockContainer"] { padding-top: 3.75rem; }
</style>"""
