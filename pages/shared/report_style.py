"""How a report looks on light and dark screens and on paper, and the script that draws its figures."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --text: #1d2530; --soft: #55606e; --line: #d5dae1; --page: #ffffff;
  --panel: #f4f6f9; --private: #8a4100; --private-page: #fff1e0; --public: #1b6141; --public-page: #e5f4ec;
  --released: #1d4f86; --released-page: #e4eefa; }
@media (prefers-color-scheme: dark) { :root { --text: #e8ebf0; --soft: #a9b3c1; --line: #3a4350; --page: #14181e;
  --panel: #1e242d; --private: #ffc58a; --private-page: #40290f; --public: #9adbb9; --public-page: #15372a;
  --released: #a6cbf5; --released-page: #17304e; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 720px; margin: 0 auto; padding: 2rem 20px 4rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: .2rem 0 .4rem; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 2.4rem 0 .6rem; padding-top: .6rem;
  border-top: 1px solid var(--line); }
p { margin: .5rem 0; }
.made, .question, .note, .help, .alt, .versions p { color: var(--soft); }
.made { margin: 0; }
.question { font-size: 1.1rem; }
.banner { padding: .6rem .9rem; border-radius: 8px; background: var(--public-page); border: 1px solid var(--public); }
.banner.private { background: var(--private-page); border-color: var(--private); }
.banner ul { margin: .3rem 0 0; }
.headline { font-size: 1.2rem; font-weight: 600; margin-bottom: .3rem; }
.label { display: inline-block; font-size: .75rem; line-height: 1.35; padding: .1rem .5rem; border-radius: 6px;
  color: var(--public); background: var(--public-page); }
.label.private { color: var(--private); background: var(--private-page); }
.label.released { color: var(--released); background: var(--released-page); }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(300px, 1fr)); gap: 12px; margin: 1rem 0; }
.tile { background: var(--panel); border-radius: 8px; padding: .7rem .9rem; }
.tile .name { font-size: .9rem; }
.tile .value { font-size: 1.5rem; font-weight: 600; line-height: 1.3; overflow-wrap: anywhere; }
.note { font-size: .9rem; }
.help { font-size: .9rem; margin: .3rem 0; }
table { width: 100%; border-collapse: collapse; margin: .8rem 0; font-size: .95rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .6rem .45rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
th { width: 26%; font-weight: 600; }
td.says { width: 24%; padding-right: 0; }
figure { margin: 1.2rem 0 2rem; }
figcaption { display: flex; flex-wrap: wrap; gap: .3rem .8rem; align-items: baseline; margin-bottom: .4rem; }
.plot { width: 100%; max-width: 680px; min-height: 340px; background: white; border-radius: 8px; overflow: hidden; }
.alt { font-size: .9rem; }
.formulae { overflow-wrap: anywhere; }
.formulae p, .formulae li { overflow-x: auto; overflow-y: hidden; }
math { font-size: 1.08em;
  font-family: "Cambria Math", "STIX Two Math", "Latin Modern Math", "DejaVu Math TeX Gyre", math; }
mtd { text-align: center; padding: .15em .2em; }
mtd[columnalign="right"] { text-align: right; } mtd[columnalign="left"] { text-align: left; }
.display { display: block; max-width: 100%; overflow-x: auto; overflow-y: hidden; padding: .4rem 0; }
.display math { display: block math; width: max-content; min-width: 100%; }
@media (max-width: 560px) { th, td, td.says { display: block; width: auto; padding: .15rem 0; border: 0; }
  tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--line); } h1 { font-size: 1.6rem; } }
"""

# FOOT is replaced. Colours of labels stay on paper: they repeat what their words say.
PRINTED = """
@page { size: A4; margin: 15mm 15mm 18mm; @bottom-left { content: "FOOT"; font: 9pt sans-serif; color: #444; }
  @bottom-right { content: counter(page) " / " counter(pages); font: 9pt sans-serif; color: #444; } }
@media print { :root { color-scheme: light; --text: #000; --soft: #444; --line: #bbb; --page: #fff; --panel: #f4f6f9;
  --private: #8a4100; --private-page: #fff1e0; --public: #1b6141; --public-page: #e5f4ec; --released: #1d4f86;
  --released-page: #e4eefa; }
  body { font-size: 10.5pt; } main { max-width: none; padding: 0; } h2 { break-after: avoid; }
  .tile, tr, figure, .banner, li, .display { break-inside: avoid; }
  .display, .formulae p, .formulae li { overflow: visible; } .display math:has(mtable) { font-size: 8.5pt; }
  .tiles { grid-template-columns: 1fr 1fr; }
  .modebar { display: none !important; }
  .label, .banner, .tile { -webkit-print-color-adjust: exact; print-color-adjust: exact; } }
"""

# Figures are as wide as their place, at most as wide as a printed page; on paper always that wide.
SCRIPT = """
const drawn = [...document.querySelectorAll("script.figure-data")].map(function (data) {
  const spec = JSON.parse(data.textContent), place = document.getElementById(spec.id);
  place.style.height = (spec.layout.height || 420) + "px";
  const config = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    toImageButtonOptions: { format: "svg", filename: spec.name } };
  Plotly.newPlot(place, spec.data, spec.layout, config);
  return place;
});
addEventListener("beforeprint", function () {
  drawn.forEach(function (place) { Plotly.relayout(place, { width: 680, autosize: false }); });
});
addEventListener("afterprint", function () {
  drawn.forEach(function (place) { Plotly.relayout(place, { width: null, autosize: true }); });
});
"""
