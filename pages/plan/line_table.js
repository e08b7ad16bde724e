// The lines of a plan as a table that is edited in place. Rows and their fields keep their elements, and with them the
// focus, while numbers change.
const NAMES = ["target", "reached", "share", "bound", "met"];
const HELP = "5%, or 12 in the value's own unit; 5% weight 2 counts its squared error twice";
const HEADS = { target: "Target ±", reached: "Reachable", share: "Share", bound: "Bound", met: "Met" };
const create = (name, parent, props = {}) => parent.appendChild(Object.assign(document.createElement(name), props));

const createRow = (body) => {
  const row = create("tr", body);
  create("th", row, { scope: "row" });
  for (const name of NAMES) create("td", row, { className: name }).dataset.name = HEADS[name];
  create("input", row.querySelector(".target"), { type: "text", placeholder: "5%", maxLength: 60, title: HELP });
  create("button", create("td", row), { type: "button", textContent: "Remove" });
};

export default ({ data, parentElement, setTriggerValue }) => {
  let table = parentElement.querySelector("table");
  if (!table) {
    table = create("table", create("div", parentElement, { style: "container-type: inline-size" }), {
      className: "sweetspot-plan",
    });
    const heads = create("tr", create("thead", table));
    create("th", heads, { scope: "col", textContent: "Statistic" });
    for (const name of NAMES) create("th", heads, { scope: "col", textContent: HEADS[name] });
    create("td", heads);
    create("tbody", table);
  }
  const body = table.tBodies[0];
  while (body.rows.length < data.length) createRow(body);
  while (body.rows.length > data.length) body.lastChild.remove();
  data.forEach(({ label, target, ...texts }, line) => {
    const row = body.rows[line], input = row.querySelector("input"), button = row.querySelector("button");
    row.querySelector("th").textContent = label;
    for (const name of NAMES.slice(1)) row.querySelector(`.${name}`).textContent = texts[name] ?? "–";
    if (document.activeElement !== input || input.defaultValue !== target) input.value = input.defaultValue = target;
    input.setAttribute("aria-label", `Target error of ${label}`);
    input.onchange = () => setTriggerValue("edited", { line, label, target: input.value });
    button.setAttribute("aria-label", `Remove ${label}`);
    button.onclick = () => setTriggerValue("edited", { line, label });
  });
};
