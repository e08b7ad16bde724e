// A handle on the main curve of a figure, or on a map over two bounds, and what is seen while it moves: users who are cut,
// simulated releases around the truth, and the parts of their error. Everything was sent once; while it moves, nothing is
// asked of the server, which hears of the end. Moving writes a few attributes of elements that stay, and reads none.

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
  font: 0.75rem var(--st-font, sans-serif); }
.sweetspot-seen > .panels { flex: 1 1 0; min-height: 0; display: flex; gap: 1.5rem; }
.sweetspot-seen > .panels > div { flex: 1 1 0; min-width: 0; display: flex; flex-direction: column; }
@media (max-width: 640px) {
  .sweetspot-seen > .panels.three { gap: 0.75rem; }
  .sweetspot-seen :is(.panels.three .line, .panels .line:last-child, .sweetspot-seen > .line) { white-space: normal; line-height: 1rem; height: 2rem; flex: none; }
}
.sweetspot-seen .line { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; line-height: 1.4rem; }
.sweetspot-seen svg { display: block; width: 100%; flex: 1 1 0; min-height: 0; overflow: visible; }
.sweetspot-seen .part::before { content: ""; display: inline-block; width: 0.6em; height: 0.6em; margin-right: 0.3em; background: var(--part); }
.sweetspot-seen button { font: inherit; height: 1.4rem; color: var(--st-link-color); background: none; border: 0; padding: 0; cursor: pointer; }
.sweetspot-seen button::before { content: "("; }
.sweetspot-seen button::after { content: ")"; }
@media print { .sweetspot-handle, .sweetspot-along, .sweetspot-seen button { display: none; } }`;

// As the page writes numbers: three digits, and thousands with commas.
const number = (value) => {
  const size = Math.abs(value);
  if (size && (size >= 1e9 || size < 1e-4)) return value.toExponential(1).replace("e+", "e");
  const rounded = size >= 100 ? Math.round(Number(value.toPrecision(3))) : Number(value.toPrecision(3));
  return rounded.toLocaleString("en", { maximumSignificantDigits: 12 });
};
const svg = (name, attributes, parent) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.append(made);
  return made;
};
const within = (low, value, high) => Math.min(Math.max(value, low), high);
// Steps of a key. Beside a second bound the keys that go up and down move that one.
const KEYS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };
const UPRIGHT = { ArrowDown: -1, ArrowUp: 1, PageDown: -3, PageUp: 3 };
const PLAYED = 4500; // Milliseconds from the first bound to the last.
const PLAYED_IN = 12; // Steps where a person wants no movement.
const UNTIL_SENT = 500; // Milliseconds after the last key.
let handles = 0;

// The place in an ascending column whose entry is nearest.
function nearest(column, value) {
  let low = 0, high = column.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (column[middle] <= value) low = middle;
    else high = middle;
  }
  return value - column[low] < column[high] - value ? low : high;
}
const nearestRatio = (bounds, bound) => nearest(bounds.map(Math.log), Math.log(bound));
const inFull = (bound, whole) => (whole ? bound.toLocaleString("en") : number(bound));
const stated = (bound, whole) => (whole ? Math.max(Math.round(bound), 1) : Number(bound.toPrecision(3)));

class Handle {
  constructor(frame, plot, send) {
    this.frame = frame;
    this.plot = plot;
    this.send = send;
    this.set = 0;
    this.grip = document.createElement("button");
    this.grip.type = "button";
    this.grip.className = "sweetspot-handle";
    this.grip.setAttribute("role", "slider");
    this.strip = document.createElement("div");
    this.strip.className = "sweetspot-seen";
    frame.append(this.grip, this.strip);
    this.along = [];
    this.grip.addEventListener("pointerdown", (event) => this.begin(event));
    this.grip.addEventListener("pointermove", (event) => this.held && this.follow(event));
    for (const end of ["pointerup", "pointercancel"]) this.grip.addEventListener(end, () => this.held && this.end());
    this.grip.addEventListener("keydown", (event) => this.key(event));
  }

  // New columns. While a person holds it, or it plays, it stays where it is.
  tell(told, height) {
    this.told = told;
    // Beside a second bound of several values the places are a grid, row by row of that one.
    this.columns = told.bounds.length;
    this.rows = told.second?.bounds.length ?? 1;
    this.both = this.rows > 1;
    this.strip.style.height = `${height}px`;
    this.frame.style.setProperty("--sweetspot-handle", told.colour);
    this.grip.classList.toggle("both", this.both);
    this.grip.setAttribute("aria-label", this.both ? `${told.name}, with the keys left and right; ${told.second.name}, up and down` : told.name);
    this.grip.setAttribute("aria-valuemin", told.bounds[0]);
    this.grip.setAttribute("aria-valuemax", told.bounds.at(-1));
    for (const dot of this.along) dot.remove();
    // Of a map the parts have no curves that they could move along.
    this.along = (this.both ? [] : told.parts).map(({ colour }) => {
      const dot = document.createElement("div");
      dot.className = "sweetspot-along";
      dot.style.background = colour;
      this.frame.append(dot);
      return dot;
    });
    this.build();
    this.home = [nearestRatio(told.bounds, told.at), this.both ? nearestRatio(told.second.bounds, told.second.at) : 0];
    if (!this.held && !this.playing) {
      clearTimeout(this.waiting);
      [this.across, this.up] = this.home;
    }
    this.across = within(0, this.across, this.columns - 1);
    this.up = within(0, this.up, this.rows - 1);
  }

  get index() {
    return this.up * this.columns + this.across;
  }

  // What is said, and sent: between two places of the columns lies where it was told to stand.
  get bound() {
    const { bounds, whole, at } = this.told;
    return stated(this.across === this.home[0] ? at : bounds[this.across], whole);
  }

  get second() {
    const { bounds, whole, at } = this.told.second;
    return stated(this.up === this.home[1] || this.rows === 1 ? at : bounds[this.up], whole);
  }

  // Once Plotly has drawn: where its axes put every bound.
  place() {
    const { xaxis, yaxis } = this.plot._fullLayout;
    const { bounds, errors, parts, second } = this.told;
    const down = (value) => yaxis._offset + within(0, yaxis.d2p(value), yaxis._length);
    this.xs = bounds.map((value) => xaxis._offset + xaxis.d2p(value));
    this.ys = this.both ? second.bounds.map((value) => yaxis._offset + yaxis.d2p(value)) : errors.map(down);
    this.rising = this.both && this.ys.slice().reverse();
    this.partYs = (this.both ? [] : parts).map(({ y }) =>
      y.map((value) => (value > 0 || yaxis.type !== "log" ? down(value) : yaxis._offset + yaxis._length)),
    );
    this.ends = [xaxis, yaxis].map((axis) => [axis._offset - 1, axis._offset + axis._length + 1]);
    this.draw();
  }

  begin(event) {
    event.preventDefault();
    this.stop();
    this.grip.focus();
    this.grip.setPointerCapture(event.pointerId);
    this.held = true;
    this.from = this.index;
    const { left, top } = this.frame.getBoundingClientRect();
    this.corner = [left, top];
  }

  follow(event) {
    const across = nearest(this.xs, event.clientX - this.corner[0]);
    // Upwards on the screen is less: the column falls.
    const up = this.both ? this.rows - 1 - nearest(this.rising, event.clientY - this.corner[1]) : 0;
    if (across !== this.across || up !== this.up) this.move(across, up);
  }

  end() {
    this.held = false;
    if (this.index !== this.from) this.tellServer();
  }

  tellServer() {
    this.send(this.told.second ? [this.bound, this.second] : this.bound);
  }

  key(event) {
    const last = this.columns - 1;
    const upright = this.both && UPRIGHT[event.key];
    const steps = KEYS[event.key];
    let { across, up } = this;
    if (upright) up = within(0, up + upright, this.rows - 1);
    else if (event.key === "Home") across = 0;
    else if (event.key === "End") across = last;
    else if (steps) across = within(0, across + steps, last);
    else return;
    event.preventDefault();
    this.stop();
    const before = this.bound;
    // Among small whole bounds several places mean one bound.
    while (steps && !upright && this.told.whole && across > 0 && across < last && Math.round(this.told.bounds[across]) === before)
      across += Math.sign(steps);
    this.move(across, up);
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.tellServer(), UNTIL_SENT);
  }

  move(across, up) {
    this.across = across;
    this.up = up;
    this.grip.classList.add("moved");
    this.draw();
  }

  // Over all bounds by itself, and at last to the best one; a second press, or a hand on the handle, ends it where it is.
  play() {
    if (this.playing) {
      this.stop();
      this.tellServer();
      return;
    }
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const began = performance.now();
    const step = (now) => {
      const share = Math.min((now - began) / PLAYED, 1);
      const last = this.columns - 1;
      if (share === 1) {
        this.stop();
        this.move(nearestRatio(this.told.bounds, this.told.best), this.up);
        this.tellServer();
        return;
      }
      const seen = still ? Math.floor(share * PLAYED_IN) / (PLAYED_IN - 1) : share;
      const across = within(0, Math.round(seen * last), last);
      if (across !== this.across) this.move(across, this.up);
      this.playing = requestAnimationFrame(step);
    };
    this.playing = requestAnimationFrame(step);
    this.player.textContent = "Stop";
  }

  stop() {
    cancelAnimationFrame(this.playing);
    this.playing = undefined;
    if (this.player) this.player.textContent = "Play";
  }

  build() {
    const { users, dots, parts, addUp, best } = this.told;
    const panels = document.createElement("div");
    panels.className = "panels";
    this.strip.replaceChildren(panels);
    this.cuts = [];
    this.points = this.bars = this.stack = undefined;
    const wasPlayer = this.player === document.activeElement;
    this.player = undefined;
    const panel = (title) => {
      const box = document.createElement("div");
      const line = document.createElement("div");
      line.className = "line";
      line.textContent = title;
      const picture = svg("svg", { preserveAspectRatio: "none", "aria-hidden": "true" });
      const below = document.createElement("div");
      below.className = "line";
      box.append(line, picture, below);
      panels.append(box);
      return { line, picture, below };
    };
    const button = (text, title, press) => {
      const made = document.createElement("button");
      made.type = "button";
      made.textContent = text;
      made.title = title;
      made.addEventListener("click", press);
      return made;
    };
    for (const { title, sizes, bySecond } of users) {
      const { line: above, picture, below } = panel(title);
      if (best && !this.player) {
        this.player = button(this.playing ? "Stop" : "Play", "Moves the bound over all its values, and ends at the best one", () => this.play());
        above.append(" ", this.player);
        if (wasPlayer) this.player.focus({ preventScroll: true });
      }
      // On a log scale, down to the lightest user that is not far below the heaviest.
      const least = Math.max(Math.min(...sizes.filter((size) => size > 0)), sizes[0] / 1e5) / 1.6;
      const heightOf = (size) => (size > least ? Math.log(size / least) / Math.log(sizes[0] / least) : 0);
      picture.setAttribute("viewBox", `0 0 ${sizes.length} 1`);
      const clip = svg("clipPath", { id: `sweetspot-kept-${++handles}` }, picture);
      const kept = svg("rect", { x: 0, width: sizes.length, y: 0, height: 1 }, clip);
      for (const [fill, opacity, path] of [["currentColor", 0.25, ""], [this.told.colour, 1, clip.id]]) {
        const group = svg("g", { fill, opacity, ...(path ? { "clip-path": `url(#${path})` } : {}) }, picture);
        sizes.forEach((size, k) => {
          const height = heightOf(size);
          svg("rect", { x: k + 0.12, width: 0.76, y: 1 - height, height }, group);
        });
      }
      const line = svg("line", { x1: 0, x2: sizes.length, stroke: "currentColor", "stroke-width": 1.5, "vector-effect": "non-scaling-stroke" }, picture);
      this.cuts.push({ sizes, bySecond, heightOf, kept, line, below });
    }
    if (dots) {
      const { line, picture, below } = panel("");
      const others = button("others", "Show other simulated releases", () => {
        this.set = (this.set + 1) % dots.draws.length;
        this.draw();
      });
      const count = dots.draws[0].length;
      line.append(`${count} simulated ${dots.what} `, others);
      if (dots.alone) {
        const note = document.createElement("div");
        note.className = "line";
        note.textContent = "Nothing was released: the dots are drawn from the model's error alone.";
        this.strip.append(note);
      }
      svg("line", { x1: "0%", x2: "100%", y1: "50%", y2: "50%", stroke: "currentColor", opacity: 0.3 }, picture);
      svg("line", { x1: "50%", x2: "50%", y1: "0%", y2: "100%", stroke: "currentColor", "stroke-width": 1.5 }, picture);
      // Below the dots the parts of their error, on the same axis.
      const room = parts.length ? 100 - 12 * parts.length : 100;
      this.bars = parts.map(({ colour }, k) => svg("rect", { y: `${room + 12 * k + 3}%`, height: "8%", fill: colour }, picture));
      // Spread over the height, so that dots at one place are all seen.
      this.points = dots.draws[0].map((_, k) =>
        svg("circle", { r: 4, cy: `${8 + ((room - 16) * ((k * 7) % count)) / (count - 1)}%`, fill: this.told.colour, stroke: this.told.colour, "stroke-width": 1.5 }, picture),
      );
      this.spread = below;
    } else if (parts.length && addUp) {
      const { picture, below } = panel("What the error consists of");
      this.stack = parts.map(({ colour }, k) => {
        const text = document.createElement("span");
        text.className = "part";
        text.style.setProperty("--part", colour);
        below.append(k ? " + " : "", text);
        return { text, bar: svg("rect", { y: "35%", height: "30%", fill: colour }, picture) };
      });
      this.sum = document.createTextNode("");
      below.append(this.sum);
    }
    panels.classList.toggle("three", panels.children.length > 2);
  }

  // Everything that depends on where the handle stands.
  draw() {
    const { told, index, bound } = this;
    const at = (x, y) => `translate(${x}px, ${y}px)`;
    const place = [this.xs[this.across], this.ys[this.both ? this.up : index]];
    this.grip.style.transform = at(...place);
    const inside = this.ends.every(([low, high], k) => place[k] >= low && place[k] <= high);
    this.grip.style.visibility = inside ? "" : "hidden";
    this.along.forEach((dot, k) => (dot.style.transform = at(place[0], this.partYs[k][index])));
    const said = `${inFull(bound, told.whole)} ${told.unit}`.trim();
    this.grip.setAttribute("aria-valuenow", bound);
    this.grip.setAttribute("aria-valuetext", this.both ? `${told.name} ${said}, ${told.second.name} ${inFull(this.second, told.second.whole)} ${told.second.unit}`.trim() : said);
    for (const { sizes, bySecond, heightOf, kept, line, below } of this.cuts) {
      const [limit, of] = bySecond ? [this.second, told.second] : [bound, told];
      const top = 1 - heightOf(limit);
      kept.setAttribute("y", top);
      line.setAttribute("y1", top);
      line.setAttribute("y2", top);
      const cut = sizes.filter((size) => size > limit).length;
      below.textContent = `${of.name} ${inFull(limit, of.whole)}: cuts ${cut || "none"}`;
    }
    if (this.points) this.drawDots(index);
    if (this.stack) {
      let from = 0;
      const whole = told.errors[index];
      told.parts.forEach(({ y }, k) => {
        const { text, bar } = this.stack[k];
        const width = (100 * y[index]) / whole;
        bar.setAttribute("x", `${from}%`);
        bar.setAttribute("width", `${width}%`);
        from += width;
        text.textContent = number(y[index]);
      });
      this.sum.data = ` = ${number(whole)}`;
    }
  }

  drawDots(index) {
    const { dots, parts } = this.told;
    const of = (column) => column[index] ?? 0;
    const [short, noise] = [of(dots.short), of(dots.noise)];
    let sum = 0;
    dots.draws[this.set].forEach((draw, k) => {
      const other = dots.others ? of(dots.sampling) * dots.others[this.set][k] : 0;
      const off = noise * draw + other - short;
      sum += dots.spread === "mean distance" ? Math.abs(off) : off * off;
      const share = off / dots.reach;
      this.points[k].setAttribute("cx", `${50 + 49 * within(-1, share, 1)}%`);
      // Beyond the end of their axis they are hollow.
      this.points[k].setAttribute("fill-opacity", Math.abs(share) > 1 ? 0 : 0.65);
    });
    parts.forEach(({ y, lacks }, k) => {
      const half = 49 * Math.min(y[index] / dots.reach, 1);
      // What lacks lies on the side of the dots.
      this.bars[k].setAttribute("x", `${lacks && short < 0 ? 50 : 50 - half}%`);
      this.bars[k].setAttribute("width", `${lacks ? half : 2 * half}%`);
    });
    const mean = sum / dots.draws[this.set].length;
    const far = dots.spread === "mean distance" ? mean : Math.sqrt(mean);
    this.far = far;
    const distance = `${number(dots.unit === "%" ? 100 * far : far)} ${dots.unit}`.trim();
    this.spread.textContent = `${dots.spread[0].toUpperCase()}${dots.spread.slice(1)}${this.cuts.length < 2 ? " from truth" : ""}: ${distance}`;
  }

  remove() {
    this.stop();
    clearTimeout(this.waiting);
    for (const element of [this.grip, this.strip, ...this.along]) element.remove();
  }
}
