"""Styles that leave more of the window for figures and answers; Streamlit has no option for them.

Streamlit leaves 80 pixels free on either side of a wide page, a fifth of what a window of 1280 has beside the sidebar.
Here it is half of that. The sidebar's links take 34 pixels each, which would push the data in use and *Save session*
out of a window 800 high. Here they take 26, and are themselves 24 high, as WCAG 2.2 asks. Names of pages start where
the headings above them start, so that "Learning under a bound", which needs 143 pixels in bold, fits. While the app is
presented, the page begins right below its header: with larger type a figure would not be visible as a whole.
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
