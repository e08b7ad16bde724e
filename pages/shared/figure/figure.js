// Draws figures with Plotly and keeps them: each has one element, which is updated and never replaced.
// Streamlit calls the default export again whenever a figure's data or the theme have changed, and what it
// returned once the figure leaves the page.

const NOT_LOADED = "The figure cannot be drawn: a script did not arrive. Load this page anew.";
const NOT_DRAWN = "The figure cannot be drawn.";
// Pictures and paper are white, whatever the page is: the colours of the light theme.
const PAPER = { text: "#08151B", ground: "#FFFFFF", line: "#DCE4E7", edge: "#C9D5D9" };
// In milliseconds. Curves take the first to move. The movement is the style sheet's: in the document the new curves
// stand at once, while Plotly's own transitions leave shapes where they were.
const TRANSITION = 120;
// Changes that follow each other faster are one movement of a slider: the pale curves stay where it began.
const ONE_MOVEMENT = 1000;
// Messages that came ahead are kept until Streamlit brings them; it leaves out those of runs that were cut short.
const MOST_EARLY = 20;

const STYLE = `
.sweetspot-figure { position: relative; width: 100%; background: var(--st-background-color); }
.sweetspot-figure .modebar-btn:focus-visible { outline: 2px solid var(--st-primary-color) !important; }
.sweetspot-figure .modebar-btn svg:has(text) { width: 1.2em; }
.sweetspot-figure .modebar-btn text { font: bold 10px sans-serif; fill: var(--st-text-color); }
@media (prefers-reduced-motion: no-preference) {
  .sweetspot-figure.moving :is(.scatterlayer, .barlayer, .shapelayer) path { transition: d ${TRANSITION}ms, transform ${TRANSITION}ms; }
}
.plotly-notifier { top: auto !important; bottom: 1rem !important; } /* At the top it covers the page's link. */
.sweetspot-figure-problem { padding: 1rem; color: var(--st-text-color); }
@media print {
  .sweetspot-figure { break-inside: avoid; }
  .sweetspot-figure .modebar-container { display: none; }
  .sweetspot-figure .svg-container, .sweetspot-figure .js-plotly-plot { max-width: 100% !important; }
  .sweetspot-figure .main-svg { max-width: 100% !important; height: auto !important; }
}`;

const figures = new Map();
let plotly;
let printing = false;
let acted = -Infinity; // When a key or the pointer was last pressed.

function loadPlotly(address) {
  plotly ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = () => (window.Plotly ? resolve(window.Plotly) : script.onerror());
    script.onerror = () => {
      plotly = undefined; // The next change tries again.
      script.remove();
      reject(new Error(NOT_LOADED));
    };
    document.head.append(script);
  });
  return plotly;
}

// Streamlit hands a figure its data once it has gone through the whole page. The same message comes ahead by a socket of
// our own; whatever comes first is drawn. A socket that closes is opened again with the next message, one that was never
// open is not: something between here and the server lets none through.
let socket;
let listensTo;
function listen(address, token) {
  if (!address || !token || token === listensTo || socket === null) return;
  listensTo = token;
  socket?.close();
  const own = (socket = new WebSocket(address.replace(/^http/, "ws")));
  let wasOpen = false;
  own.onopen = () => {
    wasOpen = true;
    own.send(token);
  };
  own.onclose = () => {
    if (socket !== own) return;
    socket = wasOpen ? undefined : null;
    listensTo = undefined;
  };
  own.onmessage = ({ data }) => {
    const end = data.indexOf("\n");
    const key = data.slice(0, end);
    for (const figure of figures.values()) if (figure.told?.key === key) figure.updateAhead(data.slice(end + 1));
    // Once it is seen, and not before, the server lets Streamlit's own messages go on.
    requestAnimationFrame(() => setTimeout(() => own.readyState === WebSocket.OPEN && own.send("drawn")));
  };
}

function merged(below, above) {
  const both = { ...below };
  for (const [name, value] of Object.entries(above ?? {})) {
    const deeper = value && typeof value === "object" && !Array.isArray(value);
    both[name] = deeper ? merged(below?.[name] ?? {}, value) : value;
  }
  return both;
}

function pageLook(element) {
  const style = getComputedStyle(element);
  const named = (name) => style.getPropertyValue(`--st-${name}`).trim();
  return {
    text: named("text-color"),
    ground: named("background-color"),
    line: named("border-color-light"),
    edge: named("border-color"),
    font: named("font"),
    // Where the type of the page is larger, as on a projector, so are letters, lines and marks of a figure.
    scale: parseFloat(getComputedStyle(document.documentElement).fontSize) / 16 || 1,
  };
}

// Room at the left and right of a plot, about: margins and numbers.
const BESIDE = 90;
const pen = document.createElement("canvas").getContext("2d");

// Names along an axis that would run into each other, as on a phone, are slanted; those of three lines would then, too.
function slant(axis, data, name, width, family) {
  if (axis?.type !== "category" || !name.startsWith("xaxis")) return;
  const of = name.replace("axis", "");
  const names = [...new Set(data.filter((trace) => (trace.xaxis ?? "x") === of).flatMap((trace) => Array.from(trace.x ?? [])))];
  const lines = names.map((text) => String(text).split("<br>"));
  if (lines.some((line) => line.length > 2)) return;
  const room = (width - BESIDE) / names.length;
  pen.font = `${axis.tickfont?.size ?? 12}px ${family || "sans-serif"}`;
  const wide = (text) => (text ? pen.measureText(text).width : 0);
  const meets = (text, next) => text && next && (wide(text) + wide(next)) / 2 + 4 > room;
  if (lines.some((line, k) => line.some((text, row) => meets(text, lines[k + 1]?.[row])))) axis.tickangle = -40;
}

// The figure's template, completed by what the page looks like; what the template says itself holds.
function template(own, look) {
  const font = { color: look.text, size: 12 * look.scale };
  const axis = {
    gridcolor: look.line,
    zerolinecolor: look.line,
    tickcolor: look.line,
    tickfont: font,
    title: { font: { color: look.text, size: 14 * look.scale } },
    minor: { gridcolor: look.line },
  };
  const layout = {
    font: { ...font, family: look.font || "sans-serif" },
    paper_bgcolor: look.ground,
    plot_bgcolor: look.ground,
    legend: { font, bordercolor: "rgba(0,0,0,0)" },
    hoverlabel: { bgcolor: look.ground, bordercolor: look.edge, font },
    modebar: { color: look.text, activecolor: look.text, bgcolor: "rgba(0,0,0,0)" },
    margin: { pad: 8 },
    xaxis: merged(axis, { title: { standoff: 20 } }),
    yaxis: merged(axis, { title: { standoff: 16 } }),
  };
  return { ...own, layout: merged(layout, own?.layout) };
}

// Sizes that a figure says itself, in pixels.
function enlarge(data, layout, scale) {
  for (const { line, marker, textfont } of data) {
    if (line?.width) line.width *= scale;
    if (typeof marker?.size === "number") marker.size *= scale;
    if (textfont?.size) textfont.size *= scale;
  }
  for (const axis of Object.values(layout)) if (axis?.tickfont?.size) axis.tickfont.size *= scale;
  for (const note of layout.annotations ?? []) if (note.font?.size) note.font = { ...note.font, size: note.font.size * scale };
}

// A text in as many lines, none much longer than the others; what has lines of its own stays.
function inLines(text, count) {
  if (/[<$]/.test(text)) return text;
  const words = text.split(" ");
  const lines = [words.shift()];
  for (const word of words) {
    const ends = lines.join(" ").length + word.length / 2;
    if (lines.length < count && ends > (text.length * lines.length) / count) lines.push(word);
    else lines[lines.length - 1] += ` ${word}`;
  }
  return lines.join("<br>");
}

// A browser moves one path into another where both have as many points, which Plotly would thin out.
// Plotly recognises a trace by its uid: with it, a trace that comes or goes does not lend its place in the legend,
// hidden or shown, to the next one. It goes into selectors of CSS, so it is made of letters, digits and underscores.
function recognisable(data) {
  const seen = {};
  for (const trace of data) {
    const name = String(trace.name ?? trace.type).replace(/[^a-z0-9]/gi, (sign) => `_${sign.charCodeAt(0)}`);
    seen[name] = (seen[name] ?? 0) + 1;
    trace.uid = `trace_${name}_${seen[name]}`;
    if (trace.mode === "lines") trace.line = { simplify: false, ...trace.line };
  }
  return data;
}

const isMainCurve = (trace) => trace.mode === "lines" && (trace.line?.width ?? 0) >= 2;
// Where an axis begins and ends makes no other axis of it.
const kind = (axis) => [axis?.title?.text, axis?.type];
const axes = ({ layout }) => JSON.stringify([kind(layout.xaxis), kind(layout.yaxis)]);
const points = (trace) => JSON.stringify([trace.x, trace.y]);

// The main curves of one figure that have moved in the next one, pale, thin and silent; none on other axes.
function pale(before, now) {
  if (!before || axes(before) !== axes(now)) return [];
  const next = new Map(now.data.map((trace) => [trace.uid, trace]));
  return before.data
    .filter((trace) => isMainCurve(trace) && next.has(trace.uid) && points(trace) !== points(next.get(trace.uid)))
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

const WHAT_IS_PALE = {
  text: "Pale: before the last change",
  name: "before",
  x: 1, y: 1, xref: "paper", yref: "paper", xanchor: "right", yanchor: "top", showarrow: false,
  font: { size: 11 },
};

// Marked points, as the best bound, that a zoom leaves outside; ends of log axes are powers of ten.
function outside({ data, layout }) {
  const within = (axis, value) => {
    const at = axis?.type === "log" ? Math.log10(value) : value;
    return !axis?.range || typeof value !== "number" || (at >= axis.range[0] && at <= axis.range[1]);
  };
  const marked = data.filter(({ mode, x, y, name }) => mode === "markers" && name && x?.length === 1 && y?.length === 1 && x[0] !== null);
  return marked.filter(({ x, y }) => !within(layout.xaxis, x[0]) || !within(layout.yaxis, y[0])).map(({ name }) => name);
}

const OUTSIDE = "outside";
const whatIsOutside = (names) => ({
  text: `Outside this view: ${names.join(", ")}. A double click shows all.`,
  name: OUTSIDE,
  x: 0, y: 1, xref: "paper", yref: "paper", xanchor: "left", yanchor: "top", showarrow: false,
  font: { size: 11 },
});

const written = (text) => ({
  svg: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 22 14"><text x="11" y="11" text-anchor="middle">${text}</text></svg>`,
});
const ARROWS = {
  width: 24, height: 24,
  path: "M4 4h6v2H6v4H4zM14 4h6v6h-2V6h-4zM4 14h2v4h4v2H4zM18 14h2v6h-6v-2h4z",
};

class Figure {
  constructor(host, address) {
    this.address = address;
    this.host = host;
    this.frame = document.createElement("div");
    this.frame.className = "sweetspot-figure";
    this.frame.setAttribute("role", "figure");
    this.element = document.createElement("div");
    this.frame.append(this.element);
    host.append(this.frame);
    this.changed = -Infinity;
    this.zoomed = new Map(); // Axes that the person has zoomed or moved, and where they now begin and end.
    this.broken = new Map(); // Titles of axes that were too long for one line, and how many they take.
    this.early = []; // What came ahead and was not brought by Streamlit yet, the oldest first.
    this.observer = new ResizeObserver((seen) => this.resized(Math.floor(seen.at(-1).contentRect.width)));
    this.observer.observe(this.frame);
    this.onFullscreen = () => {
      this.broken.clear();
      this.draw();
    };
    document.addEventListener("fullscreenchange", this.onFullscreen);
  }

  // What comes ahead is the newest there is.
  updateAhead(text) {
    this.early.push(text);
    if (this.early.length > MOST_EARLY) this.early.shift();
    this.update(text);
  }

  // What Streamlit brings may have been drawn already, and others after it.
  updateInTurn(text) {
    const at = this.early.indexOf(text);
    this.early.splice(0, at + 1);
    if (at < 0 || !this.early.length) this.update(text);
  }

  update(text) {
    const isNew = text !== this.text;
    // To ask what the page looks like makes the browser work out the styles of all that Streamlit has just changed.
    // New curves do not wait for that: they are drawn as the last ones were, and the look is compared once they are seen.
    const compareLater = isNew && this.element.data;
    if (!compareLater) {
      const changed = this.looksOther();
      if (!isNew && !changed && this.element.data) return;
    }
    if (isNew) {
      const told = JSON.parse(text);
      const now = performance.now();
      recognisable(told.figure.data);
      // The first change has something before it, however soon it comes after the figure itself. A first answer that
      // is refined is no change: nobody touched anything since it was drawn.
      const rests = this.before && now - this.changed <= ONE_MOVEMENT;
      if (this.told && acted > this.changed && !rests) this.before = this.told.figure;
      this.changed = now;
      this.told = told;
      this.text = text;
      this.frame.setAttribute("aria-label", told.alt);
      this.element.style.minHeight = `${told.height}px`;
      this.tellHandle();
    }
    this.draw(isNew);
    if (compareLater) requestAnimationFrame(() => (this.comparing = setTimeout(() => this.looksOther() && this.draw())));
  }

  tellHandle() {
    const { handle, strip } = this.told;
    if (!handle) {
      this.handle?.remove();
      this.handle = undefined;
      return;
    }
    this.handle ??= new Handle(this.frame, this.element, (bound) => this.moved?.("moved", bound));
    this.handle.tell(handle, strip);
  }

  // Notes what the page looks like; whether that is another look than before.
  looksOther() {
    const look = JSON.stringify(pageLook(this.frame));
    if (look === this.look) return false;
    this.look = look;
    this.broken.clear();
    return true;
  }

  // What Plotly is given: copies, as it writes into them, and a later drawing begins from what the server said.
  content(look) {
    const { figure, ghost } = this.told;
    const behind = ghost ? pale(this.before, figure) : [];
    const layout = structuredClone(figure.layout);
    const full = document.fullscreenElement === this.frame;
    layout.template = template(layout.template, look);
    // Zoom, pan and what is hidden in the legend hold. Plotly looks for this in the layout, not in its template.
    layout.uirevision ??= "keep";
    layout.width = this.width;
    layout.height = full ? window.innerHeight - (this.told.strip ?? 0) : this.told.height;
    for (const [name, [low, high]] of this.zoomed) {
      const [first, last] = layout[name]?.range ?? [];
      // Ends that follow their curves are not to undo a zoom; one that would show nothing of them goes.
      if (low < last && high > first) layout[name].range = [low, high];
      else this.zoomed.delete(name);
    }
    for (const axis of Object.values(layout)) {
      const count = this.broken.get(axis?.title?.text);
      if (count) axis.title.text = inLines(axis.title.text, count);
    }
    if (behind.length) layout.annotations = [...(layout.annotations ?? []), WHAT_IS_PALE];
    const left = this.zoomed.size ? outside({ data: figure.data, layout }) : [];
    if (left.length) layout.annotations = [...(layout.annotations ?? []), whatIsOutside(left)];
    const data = structuredClone([...behind, ...figure.data]);
    if (look.scale !== 1) enlarge(data, layout, look.scale);
    for (const [name, axis] of Object.entries(layout)) slant(axis, figure.data, name, this.width, look.font);
    return { data, layout };
  }

  async draw(moves = false, look = undefined) {
    try {
      // Once it is there, everything up to the picture happens at once: a page about to be printed does not wait.
      const Plotly = window.Plotly ?? (await loadPlotly(this.address));
      // In a tab that is closed there is no width to draw for; the observer calls again once there is. To ask the
      // frame makes the browser lay out the page, so that is done before the first drawing only.
      const width = (this.element.data && this.seen) ?? Math.floor(this.frame.clientWidth);
      if (!this.frame.isConnected || !width) return;
      this.width = width;
      if (!this.element.data) this.looksOther(); // Plotly took its time to arrive, and the page may have changed.
      const { data, layout } = this.content(look ?? JSON.parse(this.look));
      if (this.element.data) {
        if (moves) this.move();
        Plotly.react(this.element, data, layout).then(() => this.handle?.place()).catch(console.warn);
      } else {
        this.element.replaceChildren();
        Plotly.newPlot(this.element, data, layout, this.config()).then(() => this.placeHandle()).catch(console.warn);
        // The label of the frame says what is seen; ticks read one by one say nothing.
        for (const svg of this.element.querySelectorAll(".main-svg")) svg.setAttribute("aria-hidden", "true");
      }
    } catch (error) {
      console.warn(error);
      if (this.element.data) return; // What stood there still stands.
      const sentence = document.createElement("div");
      sentence.className = "sweetspot-figure-problem";
      sentence.setAttribute("role", "alert");
      sentence.textContent = `${error.message === NOT_LOADED ? NOT_LOADED : NOT_DRAWN} What it would show: ${this.told.alt}`;
      this.element.replaceChildren(sentence);
    }
  }

  // Plotly writes the title of an axis in one line and lets it leave the figure, as large type on a projector does.
  fitTitles() {
    const axes = Object.entries(this.element._fullLayout ?? {}).filter(([name]) => /^[xy]axis\d*$/.test(name));
    const lie = axes.map(([name, axis]) => [this.told.figure.layout[name]?.title?.text, axis._offset, axis._length]);
    const fitted = JSON.stringify([lie, this.width, this.look]);
    if (fitted === this.fitted) return; // To measure makes the browser lay out the page, which a moved slider does not.
    this.fitted = fitted;
    const box = this.element.getBoundingClientRect();
    let changed = false;
    for (const [name, axis] of axes) {
      const text = this.told.figure.layout[name]?.title?.text;
      const title = this.element.querySelector(`.${axis._id}title`)?.getBoundingClientRect();
      const across = name.startsWith("x");
      if (!text || !title?.width || /[<$]/.test(text)) continue;
      // Beside others above or below it a title has the length of its axis, alone it may reach to the edge.
      const alone = across || !axes.some(([other]) => other !== name && other[0] === name[0]);
      const middle = axis._offset + axis._length / 2;
      const free = alone ? 2 * Math.min(middle, (across ? box.width : box.height) - middle) : axis._length * 1.15;
      const lines = this.broken.get(text) ?? 1;
      if ((across ? title.width : title.height) <= free || lines >= 3) continue;
      this.broken.set(text, lines + 1);
      changed = true;
    }
    if (changed) this.draw();
  }

  // Zooming, panning and a legend that takes another line move what it stands on.
  placeHandle() {
    this.element.on("plotly_relayout", () => {
      this.handle?.place();
      this.noteZoom();
    });
    this.element.on("plotly_afterplot", () => {
      this.handle?.place();
      this.oneStop();
      this.noteEnds();
      this.fitTitles();
    });
    this.handle?.place();
    this.oneStop();
    this.fitTitles();
    this.element.addEventListener("keydown", (event) => this.toNextTool(event));
  }

  noteZoom() {
    const before = JSON.stringify([...this.zoomed]);
    for (const [name, told] of this.axesTold()) {
      const { range } = this.element._fullLayout[name];
      const same = range.every((end, at) => Math.abs(end - told.range[at]) < 1e-9 * Math.abs(told.range[1] - told.range[0]));
      if (same) this.zoomed.delete(name);
      else this.zoomed.set(name, [...range]);
    }
    if (JSON.stringify([...this.zoomed]) !== before) setTimeout(() => this.draw()); // With what lies outside, or without.
  }

  axesTold() {
    return Object.entries(this.told.figure.layout).filter(([name, axis]) => /^[xy]axis\d*$/.test(name) && axis.range);
  }

  // What *Reset axes* goes back to: where the axes begin and end now, not as they were drawn first.
  noteEnds() {
    for (const [name, { range }] of this.axesTold()) {
      const axis = this.element._fullLayout?.[name];
      if (axis) [axis._rangeInitial0, axis._rangeInitial1] = range;
    }
  }

  // The figure's tools are one stop of the Tab key, as those of any toolbar; arrows go from one to the next.
  oneStop() {
    const [first, ...others] = this.tools();
    if (!first || (first.tabIndex === 0 && others.every((tool) => tool.tabIndex === -1))) return;
    const held = others.find((tool) => tool === document.activeElement);
    for (const tool of [first, ...others]) tool.tabIndex = tool === (held ?? first) ? 0 : -1;
  }

  tools() {
    return [...this.element.querySelectorAll(".modebar-btn")];
  }

  toNextTool(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const tools = this.tools();
    const at = tools.indexOf(event.target);
    if (!step || at < 0) return;
    event.preventDefault();
    const next = tools[(at + step + tools.length) % tools.length];
    for (const tool of tools) tool.tabIndex = tool === next ? 0 : -1;
    next.focus();
  }

  // Zooming and panning redraw curves too, and must not lag behind the pointer.
  move() {
    clearTimeout(this.moving);
    this.frame.classList.add("moving");
    this.moving = setTimeout(() => this.frame.classList.remove("moving"), 2 * TRANSITION);
  }

  resized(width) {
    const hidden = this.seen === 0;
    this.seen = width;
    // What came while it was hidden was not drawn.
    if (!this.told || printing || !width || (width === this.width && !hidden)) return;
    clearTimeout(this.waiting);
    // At once where nothing has been drawn yet; else after the last of many steps, as when the sidebar slides.
    this.waiting = setTimeout(() => this.drawAnew(), this.element.data ? 80 : 0);
  }

  // The type of the page may have become larger, too.
  drawAnew() {
    this.looksOther();
    this.draw();
  }

  config() {
    const save = (format) => ({
      name: `save${format}`,
      title: `Save this figure as ${format}`,
      icon: written(format),
      click: () => this.save(format.toLowerCase()),
    });
    const csv = {
      name: "saveCSV",
      title: "Save the data of this figure as CSV",
      icon: written("CSV"),
      // The server writes that file when it is asked for; its button stands near the figure.
      click: () => document.querySelector(`.st-key-${this.told.csv} button`)?.click(),
    };
    const full = {
      name: "fullscreen",
      title: "Full screen",
      icon: ARROWS,
      click: () => (document.fullscreenElement ? document.exitFullscreen() : this.frame.requestFullscreen()),
    };
    // Two groups, as on a narrow figure more room between them would push the first one over the axis' title.
    return {
      displaylogo: false,
      modeBarButtons: [
        [...(this.told.csv ? [csv] : []), save("PNG"), save("SVG")],
        ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d", full],
      ],
    };
  }

  paper() {
    return { ...JSON.parse(this.look), ...PAPER };
  }

  // What is seen, zoomed as it is, on white and without the pale curves.
  save(format) {
    const { figure, fileName, height } = this.told;
    const shown = { width: this.width, height };
    const layout = { ...this.element.layout, ...shown, template: template(figure.layout.template, this.paper()) };
    layout.annotations = layout.annotations?.filter(({ name }) => name !== WHAT_IS_PALE.name && name !== OUTSIDE);
    const data = this.element.data.filter((trace) => trace.meta !== "before");
    return window.Plotly.downloadImage(
      structuredClone({ data, layout }),
      { ...shown, format, filename: fileName, scale: format === "png" ? 2 : 1 },
    );
  }

  remove() {
    clearTimeout(this.waiting);
    clearTimeout(this.moving);
    clearTimeout(this.comparing);
    this.observer.disconnect();
    document.removeEventListener("fullscreenchange", this.onFullscreen);
    figures.delete(this.host);
    this.handle?.remove();
    window.Plotly?.purge(this.element);
    this.frame.remove();
  }
}

// A tab with less in it makes the page shorter, and the browser then moves everything down, the row of tabs with it.
// So a page does not get shorter when a tab is chosen: the room stays until the person goes to another page.
function keepRoom(event) {
  const target = event.target instanceof Element ? event.target : null;
  const main = document.querySelector('[data-testid="stMainBlockContainer"]');
  if (!main || !target) return;
  if (target.closest('[role="tab"]')) main.style.minHeight = `${main.offsetHeight}px`;
  else if (target.closest('[data-testid="stSidebarNav"], [data-testid="stPageLink"]')) main.style.minHeight = "";
}

function once() {
  for (const kind of ["click", "keydown"]) document.addEventListener(kind, keepRoom, true);
  for (const kind of ["pointerdown", "keydown"])
    document.addEventListener(kind, () => (acted = performance.now()), true);
  const style = document.createElement("style");
  style.textContent = STYLE + HANDLE_STYLE;
  document.head.append(style);
  // Paper is narrower than the window, and white: with a view box, a picture shrinks with its place.
  window.addEventListener("beforeprint", () => {
    printing = true;
    for (const figure of figures.values()) {
      if (!figure.element.data) continue;
      figure.draw(false, figure.paper());
      for (const svg of figure.element.querySelectorAll(".main-svg"))
        svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
    }
  });
  window.addEventListener("afterprint", () => {
    printing = false;
    for (const figure of figures.values()) {
      if (!figure.element.data) continue;
      for (const svg of figure.element.querySelectorAll(".main-svg")) svg.removeAttribute("viewBox");
      figure.draw();
    }
  });
}
once();

export default function show({ data, parentElement, setTriggerValue }, address, socketAddress) {
  let figure = figures.get(parentElement);
  if (!figure) figures.set(parentElement, (figure = new Figure(parentElement, address)));
  figure.moved = setTriggerValue;
  figure.updateInTurn(new TextDecoder().decode(data));
  listen(socketAddress, figure.told.channel);
  // Where one message follows another at once, Streamlit ends the call for the first before or after that for the
  // second has drawn. Only the last call may take the figure away, and only once its place has left the page: else
  // the figure would come anew, without the person's zoom.
  const call = (figure.call = (figure.call ?? 0) + 1);
  return () => {
    if (figure.call === call && !parentElement.isConnected) figure.remove();
  };
}
