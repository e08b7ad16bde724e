// A number that stays keeps its element, and with it whether its explanation is open.
const CELL = `<dt><span class="label"></span><button type="button" aria-expanded="false">?</button></dt>
  <dd class="value"></dd><dd class="note"></dd><dd class="help" hidden></dd>`;
const createCell = () => {
  const cell = document.createElement("div");
  cell.innerHTML = CELL;
  const [button, help] = [cell.querySelector("button"), cell.querySelector(".help")];
  button.onclick = () => {
    help.hidden = !help.hidden;
    button.setAttribute("aria-expanded", String(!help.hidden));
  };
  return cell;
};
export default ({ data, parentElement }) => {
  const grid = parentElement.querySelector(".sweetspot-grid");
  // At most five in a row, and no row of one where others are full: six are two rows of three, seven four and three.
  const short = data.filter(({ wide }) => !wide).length;
  grid.style.setProperty("--columns", Math.ceil(short / Math.ceil(short / 5)) || 1);
  while (grid.children.length < data.length) grid.append(createCell());
  while (grid.children.length > data.length) grid.lastChild.remove();
  data.forEach(({ wide, ...texts }, place) => {
    const cell = grid.children[place];
    cell.className = wide ? "wide" : "";
    for (const [name, text] of Object.entries(texts)) {
      const element = cell.querySelector(`.${name}`);
      if (element.textContent !== text) element.textContent = text;
    }
    const button = cell.querySelector("button");
    button.style.display = texts.help ? "" : "none";
    button.title = texts.help;
    button.setAttribute("aria-label", `What this is: ${texts.label}`);
    if (!texts.help) cell.querySelector(".help").hidden = true;
  });
};
