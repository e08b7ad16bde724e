// What a figure looks like: the page's theme and type size, unique traces, pale curves, notes and icons.

// Pictures and paper are white, whatever the page is: the colours of the light theme.
const PAPER_COLOURS = { text: "#08151B", ground: "#FFFFFF", line: "#DCE4E7", edge: "#C9D5D9" };

// Returns an object with the values of both, of nested objects too; where both have a value, that of the second.
function merge(base, overrides) {
  const result = { ...base };
  for (const [name, value] of Object.entries(overrides ?? {})) {
    const isNested = value && typeof value === "object" && !Array.isArray(value);
    result[name] = isNested ? merge(base?.[name] ?? {}, value) : value;
  }
  return result;
}

function readTheme(element) {
  const style = getComputedStyle(element);
  const readProperty = (name) => style.getPropertyValue(`--st-${name}`).trim();
  return {
    text: readProperty("text-color"),
    ground: readProperty("background-color"),
    line: readProperty("border-color-light"),
    edge: readProperty("border-color"),
    font: readProperty("font"),
    // Where the type of the page is larger, as on a projector, so are letters, lines and marks of a figure.
    scale: parseFloat(getComputedStyle(document.documentElement).fontSize) / 16 || 1,
  };
}

// Pixels at the left and right of a plot, about: margins and numbers.
const SIDE_MARGINS = 90;
const textContext = document.createElement("canvas").getContext("2d");

// Slants the names along an axis if they would overlap, as on a phone; names of three lines stand upright.
function slantNames(axis, data, name, width, family) {
  if (axis?.type !== "category" || !name.startsWith("xaxis")) return;
  const traceAxis = name.replace("axis", "");
  const names = [...new Set(data.filter((trace) => (trace.xaxis ?? "x") === traceAxis).flatMap((trace) => Array.from(trace.x ?? [])))];
  const lines = names.map((text) => String(text).split("<br>"));
  const room = (width - SIDE_MARGINS) / names.length;
  textContext.font = `${axis.tickfont?.size ?? 12}px ${family || "sans-serif"}`;
  const measure = (text) => (text ? textContext.measureText(text).width : 0);
  const overlap = (text, next) => text && next && (measure(text) + measure(next)) / 2 + 4 > room;
  if (lines.some((line, k) => line.some((text, row) => overlap(text, lines[k + 1]?.[row])))) axis.tickangle = lines.some((line) => line.length > 2) ? -90 : -40;
}

// Returns the figure's template, completed by the page's theme; what the template sets itself is kept.
function completeTemplate(template, theme) {
  const font = { color: theme.text, size: 13 * theme.scale };
  const axis = {
    gridcolor: theme.line,
    zerolinecolor: theme.line,
    tickcolor: theme.line,
    tickfont: font,
    title: { font: { color: theme.text, size: 14 * theme.scale } },
    minor: { gridcolor: theme.line },
  };
  const layout = {
    font: { ...font, family: theme.font || "sans-serif" },
    paper_bgcolor: theme.ground,
    plot_bgcolor: theme.ground,
    legend: { font, bordercolor: "rgba(0,0,0,0)" },
    hoverlabel: { bgcolor: theme.ground, bordercolor: theme.edge, font },
    modebar: { color: theme.text, activecolor: theme.text, bgcolor: "rgba(0,0,0,0)" },
    margin: { pad: 8 },
    xaxis: merge(axis, { title: { standoff: 20 } }),
    yaxis: merge(axis, { title: { standoff: 16 } }),
  };
  return { ...template, layout: merge(layout, template?.layout) };
}

// Scales the sizes that a figure sets itself, in pixels.
function enlarge(data, layout, scale) {
  for (const { line, marker, textfont } of data) {
    if (line?.width) line.width *= scale;
    if (typeof marker?.size === "number") marker.size *= scale;
    if (textfont?.size) textfont.size *= scale;
  }
  for (const axis of Object.values(layout)) if (axis?.tickfont?.size) axis.tickfont.size *= scale;
  for (const note of layout.annotations ?? []) if (note.font?.size) note.font = { ...note.font, size: note.font.size * scale };
}

// Gives labels the colour of the ground around their letters, so that they are legible on a line.
function addHalos(data, theme) {
  for (const { mode, textfont } of data) if (mode === "text") textfont.shadow = `0 0 3px ${theme.ground}, 0 0 3px ${theme.ground}`;
}

const TITLE_SIZE = 18; // Of a saved picture, in pixels.
const PIXELS_PER_PIXEL = 3; // Of a saved PNG: 300 dots per inch in a column of a paper.

// Returns the rules of the page's style sheets for the first font of a list, with the font itself: a picture loads no files.
async function readFontFaces(family) {
  const name = family.split(",")[0].replaceAll('"', "").trim();
  const rules = [...document.styleSheets].flatMap((sheet) => {
    try {
      return [...sheet.cssRules];
    } catch {
      return []; // Of another origin.
    }
  });
  const faces = rules.filter((rule) => rule instanceof CSSFontFaceRule && rule.style.getPropertyValue("font-family").replaceAll('"', "") === name && rule.style.getPropertyValue("font-style") !== "italic");
  const texts = await Promise.all(faces.map(async (face) => {
    const [, path] = face.cssText.match(/url\("?([^")]+)"?\)/) ?? [];
    if (!path) return "";
    const blob = await (await fetch(new URL(path, face.parentStyleSheet.href ?? document.baseURI))).blob();
    const reader = new FileReader();
    await new Promise((resolve) => ((reader.onload = resolve), reader.readAsDataURL(blob)));
    return face.cssText.replace(path, reader.result);
  }));
  return texts.join("\n");
}

// Returns an SVG picture as a PNG.
async function drawPixels(svgBlob, { width, height }) {
  const image = new Image();
  image.src = URL.createObjectURL(svgBlob);
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: width * PIXELS_PER_PIXEL, height: height * PIXELS_PER_PIXEL });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((resolve) => canvas.toBlob(resolve));
}

function download(blob, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Returns the text broken into this many lines of about the same length; a text with line breaks stays as it is.
function breakLines(text, numLines) {
  if (/[<$]/.test(text)) return text;
  const words = text.split(" ");
  const lines = [words.shift()];
  for (const word of words) {
    const middle = lines.join(" ").length + word.length / 2;
    if (lines.length < numLines && middle > (text.length * lines.length) / numLines) lines.push(word);
    else lines[lines.length - 1] += ` ${word}`;
  }
  return lines.join("<br>");
}

// Gives each trace a uid and keeps all points of its lines.
// Plotly recognises a trace by its uid: without it, a trace that is added or removed would pass on its place in the legend,
// hidden or shown, to the next one. The uid goes into CSS selectors, so it has only letters, digits and underscores.
// A browser moves one path into another if both have as many points, which Plotly would thin out.
function prepareTraces(data) {
  const countsByName = {};
  for (const trace of data) {
    const name = String(trace.name ?? trace.type).replace(/[^a-z0-9]/gi, (sign) => `_${sign.charCodeAt(0)}`);
    countsByName[name] = (countsByName[name] ?? 0) + 1;
    trace.uid = `trace_${name}_${countsByName[name]}`;
    if (trace.mode === "lines") trace.line = { simplify: false, ...trace.line };
  }
  return data;
}

const isToggle = ({ meta }) => meta === "toggle";
const isMainCurve = (trace) => trace.mode === "lines" && (trace.line?.width ?? 0) >= 2;
// An axis with other limits is still the same axis.
const identifyAxis = (axis) => [axis?.title?.text, axis?.type];
const identifyAxes = ({ layout }) => JSON.stringify([identifyAxis(layout.xaxis), identifyAxis(layout.yaxis)]);
const writePoints = (trace) => JSON.stringify([trace.x, trace.y]);

// Returns pale copies of the previous figure's main curves that have moved since; none if the axes are others.
function buildGhosts(previous, current) {
  if (!previous || identifyAxes(previous) !== identifyAxes(current)) return [];
  const tracesByUid = new Map(current.data.map((trace) => [trace.uid, trace]));
  return previous.data
    .filter((trace) => isMainCurve(trace) && tracesByUid.has(trace.uid) && writePoints(trace) !== writePoints(tracesByUid.get(trace.uid)))
    .map((trace) => ({
      ...trace,
      uid: `${trace.uid}_before`,
      name: `${trace.name}, before`,
      meta: "before",
      opacity: 0.35,
      line: { ...trace.line, width: 1.5 },
      hoverinfo: "skip",
      hovertemplate: undefined,
      showlegend: false,
    }));
}

// Returns a note above the curves, at the left for x = 0 and at the right for x = 1.
const buildNote = (text, name, x) => ({
  text, name, x, y: 1, xref: "paper", yref: "paper", yanchor: "top", xanchor: x ? "right" : "left", showarrow: false, font: { size: 13 },
});
const GHOST_NOTE = buildNote("Pale: before the last change", "before", 1);
const HIDDEN_NOTE_NAME = "outside";
const buildHiddenNote = (names) => buildNote(`Outside this view: ${names.join(", ")}. A double click shows all.`, HIDDEN_NOTE_NAME, 0);

// Returns the names of marks, such as the best bound, that a zoom hides; limits of log axes are powers of ten.
function listHiddenMarks({ data, layout }) {
  const isVisible = (axis, value) => {
    const position = axis?.type === "log" ? Math.log10(value) : value;
    return !axis?.range || typeof value !== "number" || (position >= axis.range[0] && position <= axis.range[1]);
  };
  const marks = data.filter(({ mode, x, y, name }) => mode === "markers" && name && x?.length === 1 && y?.length === 1 && x[0] !== null);
  return marks.filter(({ x, y }) => !isVisible(layout.xaxis, x[0]) || !isVisible(layout.yaxis, y[0])).map(({ name }) => name);
}

const buildTextIcon = (text) => ({
  svg: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 22 14"><text x="11" y="11" text-anchor="middle">${text}</text></svg>`,
});
const FULLSCREEN_ICON = {
  width: 24, height: 24,
  path: "M4 4h6v2H6v4H4zM14 4h6v6h-2V6h-4zM4 14h2v4h4v2H4zM18 14h2v6h-6v-2h4z",
};
