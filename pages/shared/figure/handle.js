// A handle on the main curve of a figure, and what is seen of a bound while it moves: users who are cut, and simulated
// releases around the truth. Everything was sent once; while it moves, nothing is asked of the server, which hears of
// the end. Moving writes a few attributes of elements that stay, and reads none.

const HANDLE_STYLE = `
.sweetspot-handle { position: absolute; left: 0; top: 0; width: 2.75rem; height: 2.75rem; margin: -1.375rem 0 0 -1.375rem;
  border: 0; padding: 0; background: none; cursor: ew-resize; touch-action: none; z-index: 5; }
.sweetspot-handle::after { content: ""; position: absolute; inset: 0.65rem; border-radius: 50%; border: 3px solid var(--sweetspot-handle); }
.sweetspot-handle:not(.moved)::before { content: "‹   ›"; position: absolute; inset: 0 -0.75rem; line-height: 2.6rem;
  font-size: 1.25rem; font-weight: bold; color: var(--sweetspot-handle); white-space: nowrap; }
.sweetspot-handle:hover::after, .sweetspot-handle:focus-visible::after { inset: 0.5rem; }
.sweetspot-handle:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: -0.3rem; border-radius: 50%; }
.sweetspot-along { position: absolute; left: 0; top: 0; width: 0.5rem; height: 0.5rem; margin: -0.25rem 0 0 -0.25rem;
  border-radius: 50%; pointer-events: none; z-index: 4; visibility: hidden; }
.sweetspot-handle.moved ~ .sweetspot-along { visibility: visible; }
.sweetspot-seen { display: flex; gap: 1.5rem; width: 100%; overflow: hidden; color: var(--st-text-color);
  font: 0.75rem var(--st-font, sans-serif); }
.sweetspot-seen > div { flex: 1 1 0; min-width: 0; display: flex; flex-direction: column; }
.sweetspot-seen .line { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; line-height: 1.4rem; }
.sweetspot-seen svg { display: block; width: 100%; flex: 1 1 0; min-height: 0; overflow: visible; }
.sweetspot-seen button { font: inherit; height: 1.4rem; color: var(--st-link-color); background: none; border: 0; padding: 0; cursor: pointer; }
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
// A key moves it further the longer it is held.
const KEYS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };
const UNTIL_SENT = 500; // Milliseconds after the last key.
let handles = 0;

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

  // New columns. While a person holds it, it stays where they are.
  tell(told, height) {
    this.told = told;
    this.strip.style.height = `${height}px`;
    this.frame.style.setProperty("--sweetspot-handle", told.colour);
    this.grip.setAttribute("aria-label", told.name);
    this.grip.setAttribute("aria-valuemin", told.bounds[0]);
    this.grip.setAttribute("aria-valuemax", told.bounds.at(-1));
    for (const dot of this.along) dot.remove();
    this.along = told.parts.map(({ colour }) => {
      const dot = document.createElement("div");
      dot.className = "sweetspot-along";
      dot.style.background = colour;
      this.frame.append(dot);
      return dot;
    });
    this.build();
    if (!this.held) {
      clearTimeout(this.waiting);
      this.index = this.nearest(told.at);
    }
    this.index = within(0, this.index, told.bounds.length - 1);
  }

  nearest(bound) {
    const { bounds } = this.told;
    let best = 0;
    for (let k = 1; k < bounds.length; k++)
      if (Math.abs(Math.log(bounds[k] / bound)) < Math.abs(Math.log(bounds[best] / bound))) best = k;
    return best;
  }

  get bound() {
    const bound = this.told.bounds[this.index];
    return this.told.whole ? Math.max(Math.round(bound), 1) : Number(bound.toPrecision(3));
  }

  // Once Plotly has drawn: where its axes put every bound.
  place() {
    const { xaxis, yaxis } = this.plot._fullLayout;
    const { bounds, errors, parts } = this.told;
    const across = (value) => xaxis._offset + xaxis.d2p(value);
    const down = (value) => yaxis._offset + within(0, yaxis.d2p(value), yaxis._length);
    this.xs = bounds.map(across);
    this.ys = errors.map(down);
    this.partYs = parts.map(({ y }) => y.map((value) => (value > 0 || yaxis.type !== "log" ? down(value) : yaxis._offset + yaxis._length)));
    this.ends = [xaxis._offset, xaxis._offset + xaxis._length];
    this.draw();
  }

  begin(event) {
    event.preventDefault();
    this.grip.focus();
    this.grip.setPointerCapture(event.pointerId);
    this.held = true;
    this.from = this.index;
    this.left = this.frame.getBoundingClientRect().left;
  }

  follow(event) {
    const x = event.clientX - this.left;
    let low = 0, high = this.xs.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.xs[middle] <= x) low = middle;
      else high = middle;
    }
    const at = x - this.xs[low] < this.xs[high] - x ? low : high;
    if (at !== this.index) this.move(at);
  }

  end() {
    this.held = false;
    if (this.index !== this.from) this.send(this.bound);
  }

  key(event) {
    const steps = KEYS[event.key];
    const last = this.told.bounds.length - 1;
    const to = event.key === "Home" ? 0 : event.key === "End" ? last : steps && within(0, this.index + steps, last);
    if (to === undefined) return;
    event.preventDefault();
    const before = this.bound;
    let at = to;
    // Among small whole bounds several places mean one bound.
    while (steps && this.told.whole && at > 0 && at < last && Math.round(this.told.bounds[at]) === before) at += Math.sign(steps);
    this.move(at);
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.send(this.bound), UNTIL_SENT);
  }

  move(index) {
    this.index = index;
    this.grip.classList.add("moved");
    this.draw();
  }

  build() {
    const { users, dots } = this.told;
    this.strip.replaceChildren();
    this.cut = this.points = undefined;
    const panel = (title) => {
      const box = document.createElement("div");
      const line = document.createElement("div");
      line.className = "line";
      line.textContent = title;
      const picture = svg("svg", { preserveAspectRatio: "none", "aria-hidden": "true" });
      const below = document.createElement("div");
      below.className = "line";
      box.append(line, picture, below);
      this.strip.append(box);
      return { line, picture, below };
    };
    if (users) {
      const { picture, below } = panel(users.title);
      const { sizes } = users;
      // On a log scale, down to the lightest user that is not far below the heaviest.
      const least = Math.max(Math.min(...sizes.filter((size) => size > 0)), sizes[0] / 1e5) / 1.6;
      this.heightOf = (size) => (size > least ? Math.log(size / least) / Math.log(sizes[0] / least) : 0);
      picture.setAttribute("viewBox", `0 0 ${sizes.length} 1`);
      const clip = svg("clipPath", { id: `sweetspot-kept-${++handles}` }, picture);
      this.kept = svg("rect", { x: 0, width: sizes.length, y: 0, height: 1 }, clip);
      for (const [fill, opacity, path] of [["currentColor", 0.25, ""], [this.told.colour, 1, clip.id]]) {
        const group = svg("g", { fill, opacity, ...(path ? { "clip-path": `url(#${path})` } : {}) }, picture);
        sizes.forEach((size, k) => {
          const height = this.heightOf(size);
          svg("rect", { x: k + 0.12, width: 0.76, y: 1 - height, height }, group);
        });
      }
      this.line = svg("line", { x1: 0, x2: sizes.length, stroke: "currentColor", "stroke-width": 1.5, "vector-effect": "non-scaling-stroke" }, picture);
      this.cut = below;
    }
    if (dots) {
      const { line, picture, below } = panel("");
      const again = document.createElement("button");
      again.type = "button";
      again.textContent = "others";
      again.title = "Show other simulated releases";
      again.addEventListener("click", () => {
        this.set = (this.set + 1) % dots.draws.length;
        this.draw();
      });
      line.append(`${dots.draws[0].length} simulated releases (`, again, ")");
      svg("line", { x1: "0%", x2: "100%", y1: "50%", y2: "50%", stroke: "currentColor", opacity: 0.3 }, picture);
      svg("line", { x1: "50%", x2: "50%", y1: "0%", y2: "100%", stroke: "currentColor", "stroke-width": 1.5 }, picture);
      // Spread over the height, so that dots at one place are all seen.
      const count = dots.draws[0].length;
      this.points = dots.draws[0].map((_, k) =>
        svg("circle", { r: 4, cy: `${10 + (80 * ((k * 7) % count)) / (count - 1)}%`, fill: this.told.colour, stroke: this.told.colour, "stroke-width": 1.5 }, picture),
      );
      this.spread = below;
    }
  }

  // Everything that depends on where the handle stands.
  draw() {
    const { told, index, bound } = this;
    const at = (x, y) => `translate(${x}px, ${y}px)`;
    this.grip.style.transform = at(this.xs[index], this.ys[index]);
    const inside = this.xs[index] >= this.ends[0] - 1 && this.xs[index] <= this.ends[1] + 1;
    this.grip.style.visibility = inside ? "" : "hidden";
    this.along.forEach((dot, k) => (dot.style.transform = at(this.xs[index], this.partYs[k][index])));
    const said = `${number(bound)} ${told.unit}`.trim();
    this.grip.setAttribute("aria-valuenow", bound);
    this.grip.setAttribute("aria-valuetext", said);
    if (this.cut) {
      const top = 1 - this.heightOf(bound);
      this.kept.setAttribute("y", top);
      this.line.setAttribute("y1", top);
      this.line.setAttribute("y2", top);
      const cut = told.users.sizes.filter((size) => size > bound).length;
      this.cut.textContent = `${told.name} ${number(bound)}: ${cut ? `cuts ${cut} of these` : "cuts none of these"}`;
    }
    if (this.points) {
      const { dots } = told;
      const draws = dots.draws[this.set];
      let sum = 0;
      draws.forEach((draw, k) => {
        const other = dots.others ? dots.sampling[index] * dots.others[this.set][k] : 0;
        const off = dots.noise[index] * draw + other - dots.short[index];
        sum += dots.spread === "mean distance" ? Math.abs(off) : off * off;
        const share = off / dots.reach;
        this.points[k].setAttribute("cx", `${50 + 49 * within(-1, share, 1)}%`);
        // Beyond the end of their axis they are hollow.
        this.points[k].setAttribute("fill-opacity", Math.abs(share) > 1 ? 0 : 0.65);
      });
      const mean = sum / draws.length;
      const far = dots.spread === "mean distance" ? mean : Math.sqrt(mean);
      this.far = far;
      this.spread.textContent = `${dots.spread} from truth: ${number(far)} ${dots.unit}`.trim();
    }
  }

  remove() {
    clearTimeout(this.waiting);
    for (const element of [this.grip, this.strip, ...this.along]) element.remove();
  }
}
