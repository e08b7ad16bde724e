// Draws figures with Plotly. Each figure has one element, which is updated and never replaced.
// Streamlit calls the default export again whenever a figure's data or the theme have changed, and calls the function
// that it returned once the figure leaves the page.

const NOT_LOADED = "The figure cannot be drawn: a script did not arrive. Reload this page.";
const NOT_DRAWN = "The figure cannot be drawn.";
// Milliseconds in which curves move. The style sheet moves them: in the document the new curves are there at once, while
// Plotly's own transitions leave shapes where they were.
const TRANSITION_MILLISECONDS = 120;
// Milliseconds. Changes that follow each other faster are one movement of a slider: the pale curves stay at its start.
const MOVEMENT_MILLISECONDS = 1000;
// Messages that came ahead are stored until Streamlit brings them; it leaves out those of runs that were cut short.
const MAX_EARLY_TEXTS = 20;

const STYLE = `
.sweetspot-figure { position: relative; width: 100%; background: var(--st-background-color); }
.sweetspot-figure .modebar-btn:focus-visible { outline: 2px solid var(--st-primary-color) !important; }
.sweetspot-figure .modebar-btn { height: 24px !important; }
.sweetspot-figure .modebar-btn svg:has(text) { width: 1.2em; }
.sweetspot-figure .modebar-btn text { font: bold 10px sans-serif; fill: var(--st-text-color); }
@media (prefers-reduced-motion: no-preference) {
  .sweetspot-figure.moving :is(.scatterlayer, .barlayer, .shapelayer) path { transition: d ${TRANSITION_MILLISECONDS}ms, transform ${TRANSITION_MILLISECONDS}ms; }
}
.sweetspot-figure.hides-parts .sweetspot-along { display: none; }
.sweetspot-toggles { display: flex; gap: 0.5rem; height: 36px; align-items: center; }
.sweetspot-toggles:empty { display: none; }
.sweetspot-toggles button { font: 0.8125rem var(--st-font, sans-serif); min-height: 26px; padding: 0 0.7rem; border-radius: 13px;
  border: 1px solid var(--st-border-color); background: none; color: var(--st-text-color); cursor: pointer; }
.sweetspot-toggles button::before { content: "+ "; }
.sweetspot-toggles button[aria-pressed="true"] { background: var(--st-secondary-background-color); border-color: var(--st-text-color); }
.sweetspot-toggles button[aria-pressed="true"]::before { content: "✓ "; }
.sweetspot-toggles button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
.plotly-notifier { top: auto !important; bottom: 1rem !important; } /* At the top it covers the page's link. */
.sweetspot-figure-problem { padding: 1rem; color: var(--st-text-color); }
@media print {
  .sweetspot-figure { break-inside: avoid; }
  .sweetspot-figure .modebar-container, .sweetspot-toggles { display: none; }
  .sweetspot-figure .svg-container, .sweetspot-figure .js-plotly-plot { max-width: 100% !important; }
  .sweetspot-figure .main-svg { max-width: 100% !important; height: auto !important; }
}`;

const figures = new Map();
let plotlyPromise;
let isPrinting = false;
let lastPressTime = -Infinity; // When a key or the pointer was last pressed.

function loadPlotly(address) {
  plotlyPromise ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = () => (window.Plotly ? resolve(window.Plotly) : script.onerror());
    script.onerror = () => {
      plotlyPromise = undefined; // The next change tries again.
      script.remove();
      reject(new Error(NOT_LOADED));
    };
    document.head.append(script);
  });
  return plotlyPromise;
}

// The message that Streamlit brings at last comes ahead by a socket of our own; whatever comes first is drawn. A socket
// that closes is opened again with the next message; one that never opened is blocked, and not tried again.
let socket;
let socketToken;
function listen(address, token) {
  if (!address || !token || token === socketToken || socket === null) return;
  socketToken = token;
  socket?.close();
  const newSocket = (socket = new WebSocket(address.replace(/^http/, "ws")));
  let wasOpen = false;
  newSocket.onopen = () => {
    wasOpen = true;
    newSocket.send(token);
  };
  newSocket.onclose = () => {
    if (socket !== newSocket) return;
    socket = wasOpen ? undefined : null;
    socketToken = undefined;
  };
  newSocket.onmessage = ({ data }) => {
    const end = data.indexOf("\n");
    const key = data.slice(0, end);
    for (const figure of figures.values()) if (figure.message?.key === key) figure.updateAhead(data.slice(end + 1));
    // Once it is seen, and not before, the server lets Streamlit's own messages go on.
    requestAnimationFrame(() => setTimeout(() => newSocket.readyState === WebSocket.OPEN && newSocket.send("drawn")));
  };
}

class Figure {
  constructor(host, address) {
    this.plotlyAddress = address;
    this.host = host;
    this.frame = document.createElement("div");
    this.frame.className = "sweetspot-figure";
    this.frame.setAttribute("role", "figure");
    this.element = document.createElement("div");
    this.toggleRow = document.createElement("div");
    this.toggleRow.className = "sweetspot-toggles";
    this.frame.append(this.element, this.toggleRow);
    host.append(this.frame);
    this.lastChangeTime = -Infinity;
    this.zoomedRanges = new Map(); // Axes that the person has zoomed or moved, with their limits.
    this.toggleStates = new Map(); // Toggles that the person has pressed, by their names, with true for shown.
    this.titleLineCounts = new Map(); // Axis titles that are too long for one line, with their number of lines.
    this.earlyTexts = []; // Messages that came ahead and that Streamlit has not brought yet, the oldest first.
    this.observer = new ResizeObserver((sizes) => this.resize(Math.floor(sizes.at(-1).contentRect.width)));
    this.observer.observe(this.frame);
    this.onFullscreen = () => {
      this.titleLineCounts.clear();
      this.draw();
    };
    document.addEventListener("fullscreenchange", this.onFullscreen);
  }

  // A message that comes ahead is the newest.
  updateAhead(text) {
    this.earlyTexts.push(text);
    if (this.earlyTexts.length > MAX_EARLY_TEXTS) this.earlyTexts.shift();
    this.update(text);
  }

  // A message that Streamlit brings may have been drawn already, and newer ones after it.
  updateInTurn(text) {
    const index = this.earlyTexts.indexOf(text);
    this.earlyTexts.splice(0, index + 1);
    if (index < 0 || !this.earlyTexts.length) this.update(text);
  }

  update(text) {
    const isNew = text !== this.messageText;
    // Reading the theme makes the browser compute the styles of all that Streamlit has just changed. New curves do not
    // wait for that: they are drawn in the last theme, and the theme is compared once they are visible.
    const compareLater = isNew && this.element.data;
    if (!compareLater) {
      const isThemeNew = this.updateTheme();
      if (!isNew && !isThemeNew && this.element.data) return;
    }
    if (isNew) {
      const message = JSON.parse(text);
      const now = performance.now();
      prepareTraces(message.figure.data);
      // The first change is compared with the figure before, however soon it comes. A first answer that is refined is no
      // change: nobody pressed anything since it was drawn.
      const isRefinement = this.previousFigure && now - this.lastChangeTime <= MOVEMENT_MILLISECONDS;
      if (this.message && lastPressTime > this.lastChangeTime && !isRefinement) this.previousFigure = this.message.figure;
      this.lastChangeTime = now;
      this.message = message;
      this.messageText = text;
      this.frame.setAttribute("aria-label", message.alt);
      this.element.style.minHeight = `${message.height}px`;
      this.updateHandle();
      this.updateToggles();
    }
    this.draw(isNew);
    if (compareLater) requestAnimationFrame(() => (this.compareTimer = setTimeout(() => this.updateTheme() && this.draw())));
  }

  updateHandle() {
    const { handle, strip } = this.message;
    if (!handle) {
      this.handle?.remove();
      this.handle = undefined;
      return;
    }
    this.handle ??= new Handle(this.frame, this.element, (bound) => this.sendValue?.("moved", bound));
    this.handle.update(handle, strip);
  }

  // Draws the figure's toggles, which take the place of their entries in the legend.
  updateToggles() {
    const toggles = this.message.figure.data.filter(isToggle);
    const isShown = ({ name, visible }) => this.toggleStates.get(name) ?? visible !== "legendonly";
    const names = toggles.map(({ name }) => name);
    if (JSON.stringify(names) !== JSON.stringify([...this.toggleRow.children].map(({ textContent }) => textContent)))
      this.toggleRow.replaceChildren(
        ...names.map((name) => {
          const button = document.createElement("button");
          button.type = "button";
          button.textContent = name;
          button.addEventListener("click", () => {
            this.toggleStates.set(name, button.getAttribute("aria-pressed") !== "true");
            this.updateToggles();
            this.draw();
          });
          return button;
        }),
      );
    toggles.forEach((toggle, k) => this.toggleRow.children[k].setAttribute("aria-pressed", isShown(toggle)));
    for (const trace of this.message.figure.data)
      if (names.includes(trace.legendgroup) && !isToggle(trace)) trace.visible = isShown(toggles[names.indexOf(trace.legendgroup)]) || "legendonly";
    const parts = this.message.handle?.error_parts.map(({ name }) => name) ?? [];
    this.frame.classList.toggle("hides-parts", this.message.figure.data.some(({ name, visible }) => visible === "legendonly" && parts.includes(name)));
  }

  // Stores the page's theme; returns true if it has changed.
  updateTheme() {
    const themeText = JSON.stringify(readTheme(this.frame));
    if (themeText === this.themeText) return false;
    this.themeText = themeText;
    this.titleLineCounts.clear();
    return true;
  }

  // Returns data and layout for Plotly: copies, as Plotly writes into them, and later drawings begin from the message.
  buildContent(theme) {
    const { figure, ghost } = this.message;
    const ghosts = ghost ? buildGhosts(this.previousFigure, figure) : [];
    const layout = structuredClone(figure.layout);
    const isFullscreen = document.fullscreenElement === this.frame;
    layout.template = completeTemplate(layout.template, theme);
    // Zoom, pan and what is hidden in the legend hold. Plotly looks for this in the layout, not in its template.
    layout.uirevision ??= "keep";
    layout.width = this.width;
    layout.height = isFullscreen ? window.innerHeight - (this.message.strip ?? 0) : this.message.height;
    for (const [name, [low, high]] of this.zoomedRanges) {
      const [first, last] = layout[name]?.range ?? [];
      // Limits that follow the curves must not undo a zoom; a zoom that would show none of the curves is dropped.
      if (low < last && high > first) layout[name].range = [low, high];
      else this.zoomedRanges.delete(name);
    }
    for (const axis of Object.values(layout)) {
      const numLines = this.titleLineCounts.get(axis?.title?.text);
      if (numLines) axis.title.text = breakLines(axis.title.text, numLines);
    }
    if (ghosts.length) layout.annotations = [...(layout.annotations ?? []), GHOST_NOTE];
    const hiddenMarks = this.zoomedRanges.size ? listHiddenMarks({ data: figure.data, layout }) : [];
    if (hiddenMarks.length) layout.annotations = [...(layout.annotations ?? []), buildHiddenNote(hiddenMarks)];
    const data = structuredClone([...ghosts.filter(({ visible }) => visible !== "legendonly"), ...figure.data.filter((trace) => !isToggle(trace))]);
    layout.showlegend &&= figure.data.some((trace) => !isToggle(trace) && trace.showlegend !== false);
    addHalos(data, theme);
    if (theme.scale !== 1) enlarge(data, layout, theme.scale);
    for (const [name, axis] of Object.entries(layout)) slantNames(axis, figure.data, name, this.width, theme.font);
    return { data, layout };
  }

  async draw(isAnimated = false, theme = undefined) {
    try {
      // Once Plotly is loaded, everything up to the picture is synchronous: a page about to be printed does not wait.
      const Plotly = window.Plotly ?? (await loadPlotly(this.plotlyAddress));
      // In a closed tab there is no width; the observer calls again once there is one. Reading the frame's width makes
      // the browser lay out the page, so it is read before the first drawing only.
      const width = (this.element.data && this.observedWidth) ?? Math.floor(this.frame.clientWidth);
      if (!this.frame.isConnected || !width) return;
      this.width = width;
      if (!this.element.data) this.updateTheme(); // Plotly took its time to arrive, and the page may have changed.
      const { data, layout } = this.buildContent(theme ?? JSON.parse(this.themeText));
      if (this.element.data) {
        if (isAnimated) this.animate();
        Plotly.react(this.element, data, layout).then(() => this.handle?.place()).catch(console.warn);
      } else {
        this.element.replaceChildren();
        Plotly.newPlot(this.element, data, layout, this.buildConfig()).then(() => this.connectHandle()).catch(console.warn);
        // The label of the frame says what is seen; ticks read one by one say nothing.
        for (const svg of this.element.querySelectorAll(".main-svg")) svg.setAttribute("aria-hidden", "true");
      }
    } catch (error) {
      console.warn(error);
      if (this.element.data) return; // The last picture stays.
      const sentence = document.createElement("div");
      sentence.className = "sweetspot-figure-problem";
      sentence.setAttribute("role", "alert");
      sentence.textContent = `${error.message === NOT_LOADED ? NOT_LOADED : NOT_DRAWN} What it would show: ${this.message.alt}`;
      this.element.replaceChildren(sentence);
    }
  }

  // Breaks axis titles into lines. Plotly writes a title in one line, which may be longer than the figure in large type.
  fitTitles() {
    const axes = Object.entries(this.element._fullLayout ?? {}).filter(([name]) => /^[xy]axis\d*$/.test(name));
    const positions = axes.map(([name, axis]) => [this.message.figure.layout[name]?.title?.text, axis._offset, axis._length]);
    const fittedState = JSON.stringify([positions, this.width, this.themeText]);
    if (fittedState === this.fittedState) return; // Measuring lays out the page, which should not happen while a slider moves.
    this.fittedState = fittedState;
    const box = this.element.getBoundingClientRect();
    let hasChanged = false;
    for (const [name, axis] of axes) {
      const text = this.message.figure.layout[name]?.title?.text;
      const title = this.element.querySelector(`.${axis._id}title`)?.getBoundingClientRect();
      const isHorizontal = name.startsWith("x");
      if (!text || !title?.width || /[<$]/.test(text)) continue;
      // A title has the length of its axis if there are axes above or below it; if not, it may reach to the edge.
      const isSingle = isHorizontal || !axes.some(([other]) => other !== name && other[0] === name[0]);
      const middle = axis._offset + axis._length / 2;
      const room = isSingle ? 2 * Math.min(middle, (isHorizontal ? box.width : box.height) - middle) : axis._length * 1.15;
      const lines = this.titleLineCounts.get(text) ?? 1;
      if ((isHorizontal ? title.width : title.height) <= room || lines >= 3) continue;
      this.titleLineCounts.set(text, lines + 1);
      hasChanged = true;
    }
    if (hasChanged) this.draw();
  }

  // Connects the handle and the tools to Plotly: zooming, panning and a longer legend move the curves under the handle.
  connectHandle() {
    this.element.on("plotly_relayout", () => {
      this.handle?.place();
      this.noteZoom();
    });
    this.element.on("plotly_afterplot", () => {
      this.handle?.place();
      this.setTabStops();
      this.setResetRanges();
      this.fitTitles();
    });
    this.handle?.place();
    this.setTabStops();
    this.fitTitles();
    this.element.addEventListener("keydown", (event) => this.focusNextTool(event));
  }

  noteZoom() {
    const previous = JSON.stringify([...this.zoomedRanges]);
    for (const [name, axis] of this.listSetAxes()) {
      const { range } = this.element._fullLayout[name];
      const isUnchanged = range.every((limit, k) => Math.abs(limit - axis.range[k]) < 1e-9 * Math.abs(axis.range[1] - axis.range[0]));
      if (isUnchanged) this.zoomedRanges.delete(name);
      else this.zoomedRanges.set(name, [...range]);
    }
    if (JSON.stringify([...this.zoomedRanges]) !== previous) setTimeout(() => this.draw()); // With or without the note on hidden marks.
  }

  // Returns the axes whose limits the message sets.
  listSetAxes() {
    return Object.entries(this.message.figure.layout).filter(([name, axis]) => /^[xy]axis\d*$/.test(name) && axis.range);
  }

  // Makes *Reset axes* go back to the present limits, not to those of the first drawing.
  setResetRanges() {
    for (const [name, { range }] of this.listSetAxes()) {
      const axis = this.element._fullLayout?.[name];
      if (axis) [axis._rangeInitial0, axis._rangeInitial1] = range;
    }
  }

  // Makes the figure's tools one stop of the Tab key, as in any toolbar; arrow keys go from tool to tool.
  setTabStops() {
    const [first, ...others] = this.listTools();
    if (!first || (first.tabIndex === 0 && others.every((tool) => tool.tabIndex === -1))) return;
    this.makeTabStop(others.find((tool) => tool === document.activeElement) ?? first);
  }

  makeTabStop(stop) {
    for (const tool of this.listTools()) tool.tabIndex = tool === stop ? 0 : -1;
  }

  listTools() {
    return [...this.element.querySelectorAll(".modebar-btn")];
  }

  focusNextTool(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const tools = this.listTools();
    const index = tools.indexOf(event.target);
    if (!step || index < 0) return;
    event.preventDefault();
    const next = tools[(index + step + tools.length) % tools.length];
    this.makeTabStop(next);
    next.focus();
  }

  // Zooming and panning redraw curves too, and must not lag behind the pointer.
  animate() {
    clearTimeout(this.moveTimer);
    this.frame.classList.add("moving");
    this.moveTimer = setTimeout(() => this.frame.classList.remove("moving"), 2 * TRANSITION_MILLISECONDS);
  }

  resize(width) {
    const wasHidden = this.observedWidth === 0;
    this.observedWidth = width;
    // A message that came while the figure was hidden was not drawn.
    if (!this.message || isPrinting || !width || (width === this.width && !wasHidden)) return;
    clearTimeout(this.resizeTimer);
    // At once if nothing has been drawn yet; else after the last of many steps, as when the sidebar slides.
    this.resizeTimer = setTimeout(() => {
      this.updateTheme(); // The type of the page may have become larger, too.
      this.draw();
    }, this.element.data ? 80 : 0);
  }

  buildConfig() {
    const save = (format) => ({
      name: `save${format}`,
      title: `Save this figure as ${format}`,
      icon: buildTextIcon(format),
      click: () => this.save(format.toLowerCase()),
    });
    const csv = {
      name: "saveCSV",
      title: "Save the data of this figure as CSV",
      icon: buildTextIcon("CSV"),
      // The server writes that file when it is asked for; its button stands near the figure.
      click: () => document.querySelector(`.st-key-${this.message.csv} button`)?.click(),
    };
    const fullscreen = {
      name: "fullscreen",
      title: "Full screen",
      icon: FULLSCREEN_ICON,
      click: () => (document.fullscreenElement ? document.exitFullscreen() : this.frame.requestFullscreen()),
    };
    // In two groups: more room between them would push the first one over the axis' title on a narrow figure.
    return {
      displaylogo: false,
      modeBarButtons: [
        [...(this.message.csv ? [csv] : []), save("PNG"), save("SVG")],
        ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d", fullscreen],
      ],
    };
  }

  readPaperTheme() {
    return { ...JSON.parse(this.themeText), ...PAPER_COLOURS };
  }

  // Saves the picture as it is zoomed, on white, with its title and typeface, and without the pale curves.
  async save(format) {
    const { figure, fileName, title } = this.message;
    const theme = this.readPaperTheme();
    textContext.font = `600 ${TITLE_SIZE}px ${theme.font}`;
    const numLines = Math.ceil(textContext.measureText(title).width / (this.width - 2 * TITLE_SIZE));
    const size = { width: this.width, height: this.message.height + (numLines - 1) * 1.4 * TITLE_SIZE };
    const layout = structuredClone({ ...this.element.layout, ...size, template: completeTemplate(figure.layout.template, theme) });
    layout.annotations = layout.annotations?.filter(({ name }) => name !== GHOST_NOTE.name && name !== HIDDEN_NOTE_NAME);
    // The first line has the room of the buttons.
    layout.margin = { ...layout.margin, t: (layout.margin?.t ?? 30) + size.height - this.message.height };
    layout.title = { text: breakLines(title, numLines), font: { size: TITLE_SIZE }, x: 0, y: 1, yref: "container", yanchor: "top", pad: { t: 4, l: 10 } };
    const data = structuredClone(this.element.data.filter((trace) => trace.meta !== "before"));
    addHalos(data, theme);
    const fontFaces = await readFontFaces(theme.font);
    const address = await window.Plotly.toImage({ data, layout }, { ...size, format: "svg" });
    const text = decodeURIComponent(address.slice(address.indexOf(",") + 1)).replace(/(<svg[^>]*>)/, (tag) => `${tag}<style>${fontFaces}</style>`);
    const blob = new Blob([text], { type: "image/svg+xml" });
    download(format === "svg" ? blob : await drawPixels(blob, size), `${fileName}.${format}`);
  }

  remove() {
    for (const timer of [this.resizeTimer, this.moveTimer, this.compareTimer]) clearTimeout(timer);
    this.observer.disconnect();
    document.removeEventListener("fullscreenchange", this.onFullscreen);
    figures.delete(this.host);
    this.handle?.remove();
    window.Plotly?.purge(this.element);
    this.frame.remove();
  }
}

// Keeps the page's height when a tab is chosen, until the person goes to another page. A tab with less content would make
// the page shorter, and the browser would then move everything down, the row of tabs with it.
function keepHeight(event) {
  const target = event.target instanceof Element ? event.target : null;
  const main = document.querySelector('[data-testid="stMainBlockContainer"]');
  if (!main || !target) return;
  if (target.closest('[role="tab"]')) main.style.minHeight = `${main.offsetHeight}px`;
  else if (target.closest('[data-testid="stSidebarNav"], [data-testid="stPageLink"]')) main.style.minHeight = "";
}

function initialise() {
  for (const type of ["click", "keydown"]) document.addEventListener(type, keepHeight, true);
  for (const type of ["pointerdown", "keydown"])
    document.addEventListener(type, () => (lastPressTime = performance.now()), true);
  const style = document.createElement("style");
  style.textContent = STYLE + HANDLE_STYLE;
  document.head.append(style);
  // Paper is narrower than the window, and white: with a view box, a picture shrinks with its place.
  const preparePrint = (isBefore) => {
    isPrinting = isBefore;
    for (const figure of figures.values()) {
      if (!figure.element.data) continue;
      figure.draw(false, isBefore ? figure.readPaperTheme() : undefined);
      for (const svg of figure.element.querySelectorAll(".main-svg"))
        if (isBefore) svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
        else svg.removeAttribute("viewBox");
    }
  };
  window.addEventListener("beforeprint", () => preparePrint(true));
  window.addEventListener("afterprint", () => preparePrint(false));
}
initialise();

export default function show({ data, parentElement, setTriggerValue }, address, socketAddress) {
  let figure = figures.get(parentElement);
  if (!figure) figures.set(parentElement, (figure = new Figure(parentElement, address)));
  figure.sendValue = setTriggerValue;
  figure.updateInTurn(new TextDecoder().decode(data));
  listen(socketAddress, figure.message.channel);
  // If one message follows another at once, Streamlit ends the first call before or after the second has drawn. Only
  // the last call may remove the figure, and only once its element has left the page: a new figure would lose the zoom.
  const call = (figure.lastCall = (figure.lastCall ?? 0) + 1);
  return () => {
    if (figure.lastCall === call && !parentElement.isConnected) figure.remove();
  };
}
