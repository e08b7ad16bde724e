const SHOWN_MILLISECONDS = 1500;
export default ({ data, parentElement }) => {
  const find = (name) => parentElement.querySelector(name);
  find(".sweetspot-number").classList.toggle("preliminary", !data.isFinal);
  find(".label").textContent = data.label;
  const unit = document.createElement("span");
  unit.className = "unit";
  unit.textContent = data.unit ? ` ${data.unit}` : "";
  find(".value").replaceChildren(data.value, unit);
  // A longer number keeps its line, so that nothing below it moves.
  find(".value").style.fontSize = data.value.length > 14 ? "1.75rem" : "";
  find(".note").textContent = data.error.length ? `${data.error[0]}: ${data.error.slice(1).join(" ").trim()}` : "";
  const [whole, parts, note] = data.split;
  const partNodes = parts.map(([name, text, colour]) => {
    const part = document.createElement("span");
    part.style.setProperty("--part", colour);
    part.textContent = `${name} ${text}`;
    return part;
  });
  find(".parts").replaceChildren(...(whole && parts.length ? [`${whole}:`] : []), ...partNodes, note);
  const button = find("button");
  button.hidden = !data.copied;
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy ${data.copied}`);
  let waiting;
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(data.copied);
      button.textContent = "Copied";
    } catch (error) {
      button.textContent = data.copied; // No permission: it can be selected and copied by hand.
    }
    clearTimeout(waiting);
    waiting = setTimeout(() => { button.textContent = "Copy"; }, SHOWN_MILLISECONDS);
  };
  return () => clearTimeout(waiting);
};
