
const drawn = [...document.querySelectorAll("script.figure-data")].map(function (data) {
  const spec = JSON.parse(data.textContent), place = document.getElementById(spec.id);
  place.style.height = (spec.layout.height || 420) + "px";
  const config = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    toImageButtonOptions: { format: "svg", filename: spec.name } };
  Plotly.newPlot(place, spec.data, spec.layout, config);
  return place;
});
addEventListener("beforeprint", function () {
  // The text width of A4 in CSS pixels, so that printing need not redraw.
  drawn.forEach(function (place) { Plotly.relayout(place, { width: 680, autosize: false }); });
});
addEventListener("afterprint", function () {
  drawn.forEach(function (place) { Plotly.relayout(place, { width: null, autosize: true }); });
});
