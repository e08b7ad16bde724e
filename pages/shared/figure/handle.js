// A handle on the main curve of a figure, or on a map over two bounds, and the strip below the figure: users who are cut,
// simulated releases around the truth, and the parts of their error. All numbers are sent once. A moving handle asks the
// server nothing and tells it only where it ends. Moving writes a few attributes of existing elements, and reads none.

const HANDLE_STYLE = `
.sweetspot-handle { position: absolute; left: 0; top: 0; width: 2.75rem; height: 2.75rem; margin: -1.375rem 0 0 -1.375rem;
  border: 0; padding: 0; background: none; cursor: ew-resize; touch-action: none; z-index: 5; }
.sweetspot-handle::after { content: ""; position: absolute; inset: 0.65rem; border-radius: 50%; border: 3px solid var(--sweetspot-handle); }
.sweetspot-handle:not(.moved)::before { content: "‹   ›"; position: absolute; inset: 0 -0.75rem; line-height: 2.6rem;
  font-size: 1.25rem; font-weight: bold; color: var(--sweetspot-handle); white-space: nowrap; }
.sweetspot-handle.both { cursor: move; }
.sweetspot-handle.both::after { box-shadow: 0 0 0 2px #fff, inset 0 0 0 2px #fff; }
.sweetspot-handle.both:not(.moved)::before { display: none; }
.sweetspot-handle:hover::after, .sweetspot-handle:focus-visible::after { inset: 0.5rem; }
.sweetspot-handle:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: -0.3rem; border-radius: 50%; }
.sweetspot-along { position: absolute; left: 0; top: 0; width: 0.5rem; height: 0.5rem; margin: -0.25rem 0 0 -0.25rem;
  border-radius: 50%; pointer-events: none; z-index: 4; visibility: hidden; }
.sweetspot-handle.moved ~ .sweetspot-along { visibility: visible; }
.sweetspot-seen { display: flex; flex-direction: column; width: 100%; overflow: hidden; color: var(--st-text-color);
  font: 0.8125rem var(--st-font, sans-serif); }
.sweetspot-seen > .panels { flex: 1 1 0; min-height: 0; display: flex; gap: 1.5rem; }
.sweetspot-seen > .panels > div { flex: 1 1 0; min-width: 0; display: flex; flex-direction: column; }
@media (max-width: 640px) {
  .sweetspot-seen > .panels.three { gap: 0.75rem; }
  .sweetspot-seen :is(.panels .line:last-child, .sweetspot-seen > .line) { white-space: normal; line-height: 1rem; height: 2rem; flex: none; }
}
.sweetspot-seen .line { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; line-height: 1.5rem; }
.sweetspot-seen .panels.three .line:first-child { white-space: normal; line-height: 1rem; height: 2.5rem; flex: none; }
@media (max-width: 1160px) {
  .sweetspot-seen .panels .line:first-child { white-space: normal; line-height: 1rem; height: 2.5rem; flex: none; }
}
.sweetspot-seen svg { display: block; width: 100%; flex: 1 1 0; min-height: 0; overflow: visible; }
.sweetspot-seen .part::before { content: ""; display: inline-block; width: 0.6em; height: 0.6em; margin-right: 0.3em; background: var(--part); }
.sweetspot-seen button { font: inherit; height: 1.5rem; color: var(--st-link-color); background: none; border: 0; padding: 0; cursor: pointer; }
.sweetspot-seen button::before { content: "("; }
.sweetspot-seen button::after { content: ")"; }
@media print { .sweetspot-handle, .sweetspot-along, .sweetspot-seen button { display: none; } }`;

// Writes a number as the page does: three digits, and thousands with commas.
const writeNumber = (value) => {
  const magnitude = Math.abs(value);
  if (magnitude && (magnitude >= 1e9 || magnitude < 1e-4)) return value.toExponential(1).replace("e+", "e");
  const rounded = magnitude >= 100 ? Math.round(Number(value.toPrecision(3))) : Number(value.toPrecision(3));
  return rounded.toLocaleString("en", { maximumSignificantDigits: 12 });
};
const createSvg = (name, attributes, parent) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent?.append(element);
  return element;
};
const clamp = (low, value, high) => Math.min(Math.max(value, low), high);
// Steps of a key. If there is a second bound, the keys that go up and down move that one.
const KEY_STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };
const UP_DOWN_STEPS = { ArrowDown: -1, ArrowUp: 1, PageDown: -3, PageUp: 3 };
const PLAY_MILLISECONDS = 4500; // Milliseconds from the first bound to the last.
const PLAY_STEPS = 12; // For a person who wants reduced motion.
const SEND_MILLISECONDS = 500; // Milliseconds after the last key.
let numClips = 0;

// Returns the index of the nearest entry in an ascending column.
function findNearest(column, value) {
  let low = 0, high = column.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (column[middle] <= value) low = middle;
    else high = middle;
  }
  return value - column[low] < column[high] - value ? low : high;
}
const findNearestRatio = (bounds, bound) => findNearest(bounds.map(Math.log), Math.log(bound));
const writeBound = (bound, isInteger) => (isInteger ? bound.toLocaleString("en") : writeNumber(bound));
const roundBound = (bound, isInteger) => (isInteger ? Math.max(Math.round(bound), 1) : Number(bound.toPrecision(3)));

class Handle {
  constructor(frame, plot, send) {
    this.frame = frame;
    this.plot = plot;
    this.send = send;
    this.drawSetIndex = 0; // Index of the simulated releases that are shown.
    this.button = document.createElement("button");
    this.button.type = "button";
    this.button.className = "sweetspot-handle";
    this.button.setAttribute("role", "slider");
    this.strip = document.createElement("div");
    this.strip.className = "sweetspot-seen";
    frame.append(this.button, this.strip);
    this.partDots = [];
    this.button.addEventListener("pointerdown", (event) => this.begin(event));
    this.button.addEventListener("pointermove", (event) => this.isHeld && this.follow(event));
    for (const type of ["pointerup", "pointercancel"]) this.button.addEventListener(type, () => this.isHeld && this.end());
    this.button.addEventListener("keydown", (event) => this.pressKey(event));
  }

  // Takes new columns. The handle stays where it is while a person holds it, or while it plays.
  update(description, height) {
    this.description = description;
    // If there is a second bound with several values, the positions are a grid with a row for each of its values.
    this.numColumns = description.bounds.length;
    this.numRows = description.second_bound?.bounds.length ?? 1;
    this.isMap = this.numRows > 1;
    this.strip.style.height = `${height}px`;
    this.frame.style.setProperty("--sweetspot-handle", description.colour);
    this.button.classList.toggle("both", this.isMap);
    this.button.setAttribute("aria-label", this.isMap ? `${description.name}, with the keys left and right; ${description.second_bound.name}, up and down` : description.name);
    this.button.setAttribute("aria-valuemin", description.bounds[0]);
    this.button.setAttribute("aria-valuemax", description.bounds.at(-1));
    for (const dot of this.partDots) dot.remove();
    // On a map the parts have no curves for their dots.
    this.partDots = (this.isMap ? [] : description.error_parts).map(({ colour }) => {
      const dot = document.createElement("div");
      dot.className = "sweetspot-along";
      dot.style.background = colour;
      this.frame.append(dot);
      return dot;
    });
    this.build();
    const { bounds, initial_value, second_bound: second } = description;
    this.homePlace = [findNearestRatio(bounds, initial_value), this.isMap ? findNearestRatio(second.bounds, second.initial_value) : 0];
    if (!this.isHeld && !this.playRequest) {
      clearTimeout(this.sendTimer);
      [this.column, this.row] = this.homePlace;
    }
    this.column = clamp(0, this.column, this.numColumns - 1);
    this.row = clamp(0, this.row, this.numRows - 1);
  }

  get index() {
    return this.row * this.numColumns + this.column;
  }

  // The bound that is shown and sent. At its home the handle has the exact value, which may lie between two columns.
  get bound() {
    const { bounds, is_integer, initial_value } = this.description;
    return roundBound(this.column === this.homePlace[0] ? initial_value : bounds[this.column], is_integer);
  }

  get secondBound() {
    const { bounds, is_integer, initial_value } = this.description.second_bound;
    return roundBound(this.row === this.homePlace[1] || this.numRows === 1 ? initial_value : bounds[this.row], is_integer);
  }

  // Computes where Plotly's axes put every bound; called once Plotly has drawn.
  place() {
    const { xaxis, yaxis } = this.plot._fullLayout;
    const { bounds, errors, error_parts: parts, second_bound: second } = this.description;
    const findY = (value) => yaxis._offset + clamp(0, yaxis.d2p(value), yaxis._length);
    this.boundXs = bounds.map((value) => xaxis._offset + xaxis.d2p(value));
    this.boundYs = this.isMap ? second.bounds.map((value) => yaxis._offset + yaxis.d2p(value)) : errors.map(findY);
    this.ascendingYs = this.isMap && this.boundYs.slice().reverse();
    this.partYs = (this.isMap ? [] : parts).map(({ y }) =>
      y.map((value) => (value > 0 || yaxis.type !== "log" ? findY(value) : yaxis._offset + yaxis._length)),
    );
    this.axisEnds = [xaxis, yaxis].map((axis) => [axis._offset - 1, axis._offset + axis._length + 1]);
    this.draw();
  }

  begin(event) {
    event.preventDefault();
    this.stop();
    this.button.focus();
    this.button.setPointerCapture(event.pointerId);
    this.isHeld = true;
    this.startIndex = this.index;
    const { left, top } = this.frame.getBoundingClientRect();
    this.frameCorner = [left, top];
  }

  follow(event) {
    const column = findNearest(this.boundXs, event.clientX - this.frameCorner[0]);
    // Pixels count downwards, so the second bound's pixels descend.
    const row = this.isMap ? this.numRows - 1 - findNearest(this.ascendingYs, event.clientY - this.frameCorner[1]) : 0;
    if (column !== this.column || row !== this.row) this.move(column, row);
  }

  end() {
    this.isHeld = false;
    if (this.index !== this.startIndex) this.sendBounds();
  }

  sendBounds() {
    this.send(this.description.second_bound ? [this.bound, this.secondBound] : this.bound);
  }

  pressKey(event) {
    const last = this.numColumns - 1;
    const rowSteps = this.isMap && UP_DOWN_STEPS[event.key];
    const steps = KEY_STEPS[event.key];
    let { column, row } = this;
    if (rowSteps) row = clamp(0, row + rowSteps, this.numRows - 1);
    else if (event.key === "Home") column = 0;
    else if (event.key === "End") column = last;
    else if (steps) column = clamp(0, column + steps, last);
    else return;
    event.preventDefault();
    this.stop();
    const previous = this.bound;
    // Several columns may round to the same small integer.
    const { bounds, is_integer } = this.description;
    while (steps && !rowSteps && is_integer && column > 0 && column < last && Math.round(bounds[column]) === previous)
      column += Math.sign(steps);
    this.move(column, row);
    clearTimeout(this.sendTimer);
    this.sendTimer = setTimeout(() => this.sendBounds(), SEND_MILLISECONDS);
  }

  move(column, row) {
    this.column = column;
    this.row = row;
    this.button.classList.add("moved");
    this.draw();
  }

  // Moves the handle over all bounds and then to the best one; a second press, or holding the handle, stops it.
  play() {
    if (this.playRequest) {
      this.stop();
      this.sendBounds();
      return;
    }
    const isReduced = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const startTime = performance.now();
    const playFrame = (now) => {
      const share = Math.min((now - startTime) / PLAY_MILLISECONDS, 1);
      const last = this.numColumns - 1;
      if (share === 1) {
        this.stop();
        this.move(findNearestRatio(this.description.bounds, this.description.best_bound), this.row);
        this.sendBounds();
        return;
      }
      const shownShare = isReduced ? Math.floor(share * PLAY_STEPS) / (PLAY_STEPS - 1) : share;
      const column = clamp(0, Math.round(shownShare * last), last);
      if (column !== this.column) this.move(column, this.row);
      this.playRequest = requestAnimationFrame(playFrame);
    };
    this.playRequest = requestAnimationFrame(playFrame);
    this.playButton.textContent = "Stop";
  }

  stop() {
    cancelAnimationFrame(this.playRequest);
    this.playRequest = undefined;
    if (this.playButton) this.playButton.textContent = "Play";
  }

  // Builds the strip below the figure: a panel for each count of users, then the simulated releases or the error's parts.
  build() {
    const { user_bars: users, dots, error_parts: parts, parts_add_up: isSum, best_bound: bestBound } = this.description;
    const panels = document.createElement("div");
    panels.className = "panels";
    this.strip.replaceChildren(panels);
    this.userPanels = [];
    this.circles = this.partBars = this.partShares = undefined;
    const playHadFocus = this.playButton === document.activeElement;
    this.playButton = undefined;
    const addPanel = (title) => {
      const box = document.createElement("div");
      const line = document.createElement("div");
      line.className = "line";
      line.textContent = title;
      const picture = createSvg("svg", { preserveAspectRatio: "none", "aria-hidden": "true" });
      const below = document.createElement("div");
      below.className = "line";
      box.append(line, picture, below);
      panels.append(box);
      return { line, picture, below };
    };
    const createButton = (text, title, press) => {
      const element = document.createElement("button");
      element.type = "button";
      element.textContent = text;
      element.title = title;
      element.addEventListener("click", press);
      return element;
    };
    for (const { title, contributions: sizes, second_bound_cuts: bySecond } of users) {
      const { line: heading, picture, below } = addPanel(title);
      if (bestBound && !this.playButton) {
        this.playButton = createButton(this.playRequest ? "Stop" : "Play", "Moves the bound over all its values, and ends at the best one", () => this.play());
        heading.append(" ", this.playButton);
        if (playHadFocus) this.playButton.focus({ preventScroll: true });
      }
      // A log scale, down to the lightest user that is not far below the heaviest.
      const smallest = Math.max(Math.min(...sizes.filter((size) => size > 0)), sizes[0] / 1e5) / 1.6;
      const getHeight = (size) => (size > smallest ? Math.log(size / smallest) / Math.log(sizes[0] / smallest) : 0);
      picture.setAttribute("viewBox", `0 0 ${sizes.length} 1`);
      const clip = createSvg("clipPath", { id: `sweetspot-kept-${++numClips}` }, picture);
      const keptArea = createSvg("rect", { x: 0, width: sizes.length, y: 0, height: 1 }, clip);
      for (const [fill, opacity, path] of [["currentColor", 0.25, ""], [this.description.colour, 1, clip.id]]) {
        const group = createSvg("g", { fill, opacity, ...(path ? { "clip-path": `url(#${path})` } : {}) }, picture);
        sizes.forEach((size, k) => {
          const height = getHeight(size);
          createSvg("rect", { x: k + 0.12, width: 0.76, y: 1 - height, height }, group);
        });
      }
      const line = createSvg("line", { x1: 0, x2: sizes.length, stroke: "currentColor", "stroke-width": 1.5, "vector-effect": "non-scaling-stroke" }, picture);
      this.userPanels.push({ sizes, bySecond, getHeight, keptArea, line, below });
    }
    if (dots) {
      const { line, picture, below } = addPanel("");
      const othersButton = createButton("redraw", "Show other simulated releases", () => {
        this.drawSetIndex = (this.drawSetIndex + 1) % dots.unit_noise_draws.length;
        this.draw();
      });
      const count = dots.unit_noise_draws[0].length;
      line.append(`Dots: ${count} simulated ${dots.dots_name} `, othersButton);
      if (dots.is_private) {
        const note = document.createElement("div");
        note.className = "line";
        note.textContent = "Nothing was released: the dots are drawn from the model's error alone.";
        this.strip.append(note);
      }
      createSvg("line", { x1: "0%", x2: "100%", y1: "50%", y2: "50%", stroke: "currentColor", opacity: 0.3 }, picture);
      createSvg("line", { x1: "50%", x2: "50%", y1: "0%", y2: "100%", stroke: "currentColor", "stroke-width": 1.5 }, picture);
      // Below the dots the parts of their error, on the same axis.
      const room = parts.length ? 100 - 12 * parts.length : 100;
      this.partBars = parts.map(({ colour }, k) => createSvg("rect", { y: `${room + 12 * k + 3}%`, height: "8%", fill: colour }, picture));
      // Spread over the height, so that dots at the same position are all visible.
      this.circles = dots.unit_noise_draws[0].map((_, k) =>
        createSvg("circle", { r: 4, cy: `${8 + ((room - 16) * ((k * 7) % count)) / (count - 1)}%`, fill: this.description.colour, stroke: this.description.colour, "stroke-width": 1.5 }, picture),
      );
      this.spreadCaption = below;
    } else if (parts.length && isSum) {
      const { picture, below } = addPanel("What the error consists of");
      this.partShares = parts.map(({ colour }, k) => {
        const text = document.createElement("span");
        text.className = "part";
        text.style.setProperty("--part", colour);
        below.append(k ? " + " : "", text);
        return { text, bar: createSvg("rect", { y: "35%", height: "30%", fill: colour }, picture) };
      });
      this.sumText = document.createTextNode("");
      below.append(this.sumText);
    }
    panels.classList.toggle("three", panels.children.length > 2);
  }

  // Draws everything that depends on the position of the handle.
  draw() {
    const { description, index, bound } = this;
    const translate = (x, y) => `translate(${x}px, ${y}px)`;
    const position = [this.boundXs[this.column], this.boundYs[this.isMap ? this.row : index]];
    this.button.style.transform = translate(...position);
    const isInside = this.axisEnds.every(([low, high], k) => position[k] >= low && position[k] <= high);
    this.button.style.visibility = isInside ? "" : "hidden";
    this.partDots.forEach((dot, k) => (dot.style.transform = translate(position[0], this.partYs[k][index])));
    const boundText = `${writeBound(bound, description.is_integer)} ${description.unit}`.trim();
    this.button.setAttribute("aria-valuenow", bound);
    this.button.setAttribute("aria-valuetext", this.isMap ? `${description.name} ${boundText}, ${description.second_bound.name} ${writeBound(this.secondBound, description.second_bound.is_integer)} ${description.second_bound.unit}`.trim() : boundText);
    for (const { sizes, bySecond, getHeight, keptArea, line, below } of this.userPanels) {
      const [limit, cutBound] = bySecond ? [this.secondBound, description.second_bound] : [bound, description];
      const top = 1 - getHeight(limit);
      keptArea.setAttribute("y", top);
      line.setAttribute("y1", top);
      line.setAttribute("y2", top);
      const numCut = sizes.filter((size) => size > limit).length;
      below.textContent = `${cutBound.name} ${writeBound(limit, cutBound.is_integer)}: ${numCut || "none"} ${numCut === 1 ? "is" : "are"} cut`;
    }
    if (this.circles) this.drawDots(index);
    if (this.partShares) {
      let start = 0;
      const total = description.errors[index];
      description.error_parts.forEach(({ y }, k) => {
        const { text, bar } = this.partShares[k];
        const width = (100 * y[index]) / total;
        bar.setAttribute("x", `${start}%`);
        bar.setAttribute("width", `${width}%`);
        start += width;
        text.textContent = writeNumber(y[index]);
      });
      this.sumText.data = ` = ${writeNumber(total)}`;
    }
  }

  drawDots(index) {
    const { dots, error_parts: parts } = this.description;
    const read = (values) => values?.[index] ?? 0;
    const [loss, noise] = [read(dots.losses_without_noise), read(dots.noise_magnitudes)];
    let sum = 0;
    dots.unit_noise_draws[this.drawSetIndex].forEach((draw, k) => {
      const sampling = dots.unit_sampling_draws ? read(dots.sampling_deviations) * dots.unit_sampling_draws[this.drawSetIndex][k] : 0;
      const error = noise * draw + sampling - loss;
      sum += dots.spread === "mean distance" ? Math.abs(error) : error * error;
      const share = error / dots.axis_limit;
      this.circles[k].setAttribute("cx", `${50 + 49 * clamp(-1, share, 1)}%`);
      // Dots beyond the end of their axis are hollow.
      this.circles[k].setAttribute("fill-opacity", Math.abs(share) > 1 ? 0 : 0.65);
    });
    parts.forEach(({ y, is_loss: isLoss }, k) => {
      const halfWidth = 49 * Math.min(y[index] / dots.axis_limit, 1);
      // A loss lies on the side of the dots.
      this.partBars[k].setAttribute("x", `${isLoss && loss < 0 ? 50 : 50 - halfWidth}%`);
      this.partBars[k].setAttribute("width", `${isLoss ? halfWidth : 2 * halfWidth}%`);
    });
    const mean = sum / dots.unit_noise_draws[this.drawSetIndex].length;
    const spread = dots.spread === "mean distance" ? mean : Math.sqrt(mean);
    const distance = `${writeNumber(dots.unit === "%" ? 100 * spread : spread)} ${dots.unit}`.trim();
    this.spreadCaption.textContent = `${dots.spread[0].toUpperCase()}${dots.spread.slice(1)}${this.userPanels.length < 2 ? " from truth" : ""}: ${distance}`;
  }

  remove() {
    this.stop();
    clearTimeout(this.sendTimer);
    for (const element of [this.button, this.strip, ...this.partDots]) element.remove();
  }
}
