// What Streamlit leaves undone around a page: an address that follows it, waking up, readable tags, the focus.
//
// Streamlit's own `st.query_params` adds an entry to the browser's history for every change: after twenty steps of a
// slider, *Back* would have to be pressed twenty times. This replaces the entry.
//
// After a lost connection Streamlit's page asks for a run only if one was under way. Where the server was started anew, or
// let go of the session (two minutes after a laptop fell asleep), the browser then has a new session that has drawn
// nothing: widgets move and nothing answers. So whenever the connection is back, the page asks whether its own session is
// still there, and loads itself anew where it is not. The address brings back the settings; the page says what is gone.
//
// The tags of a multiselect and the labels of main buttons are white on the primary colour, 3.25:1 on a dark page. In the
// page's own background colour they have what the theme guarantees for the primary colour on the page, at least 4.5:1,
// light and dark.
//
// Streamlit disables a download button while its file is made, and the browser then takes the focus away for good: Tab
// begins at the top of the page, and Escape no longer closes a dialog.
document.addEventListener("click", ({ target }) => {
  const place = target.closest('[data-testid="stDownloadButton"]');
  if (!place) return;
  const observer = new MutationObserver(() => {
    const button = place.querySelector("button:not(:disabled)");
    if (!button) return;
    observer.disconnect();
    if (document.activeElement === document.body) button.focus({ preventScroll: true });
  });
  observer.observe(place, { attributeFilter: ["disabled"], subtree: true });
});
const TAGS = "sweetspot-tags";
// A server that has just come up, or a connection that flickers on a busy machine, may not know the session yet: it is
// gone only when the server has said so CERTAIN times.
const RETRY_MILLISECONDS = 250, TRIES = 40, CERTAIN = 3;
// After the next picture: to ask for a colour makes the browser work out all styles that have just changed, and new
// curves would wait for it.
export default (component) => {
  let timer;
  const frame = requestAnimationFrame(() => { timer = setTimeout(() => follow(component)); });
  return () => { cancelAnimationFrame(frame); clearTimeout(timer); };
};
let session, app, connected = true;
const isConnected = () => app.dataset.testConnectionState === "CONNECTED";
const observer = new MutationObserver(() => {
  const before = connected;
  connected = isConnected();
  if (connected && !before) wake(session);
});
function watch(data) {
  session = data;
  const now = document.querySelector("[data-testid='stApp'][data-test-connection-state]");
  if (!now || now === app) return;
  app = now;
  connected = isConnected();
  observer.disconnect();
  observer.observe(app, { attributes: true, attributeFilter: ["data-test-connection-state"] });
}
async function wake({ token, address }) {
  let unknown = 0;
  for (let tries = 0; tries < TRIES && connected && session.token === token; tries += 1) {
    try {
      const answer = await fetch(new URL(address, document.baseURI), {
        cache: "no-store", headers: { [HEADER]: token },
      });
      if (answer.status === 404) unknown += 1;
      if (unknown === CERTAIN) window.location.reload();
      if (unknown === CERTAIN || (answer.status < 500 && answer.status !== 404)) return;
    } catch (error) { /* The connection is gone again, or not quite back. */ }
    await new Promise((done) => setTimeout(done, RETRY_MILLISECONDS));
  }
}
function follow({ data, parentElement }) {
  // Another session answers in this one's place: where a run was cut short before the connection was lost, Streamlit asks
  // for one by itself, with the address that was opened. The one that stands there now holds what was moved since.
  if (session && session.token !== data.token) return window.location.reload();
  watch(data);
  const { pathname, search } = window.location;
  const wanted = data.query ? `?${data.query}` : "";
  if (search !== wanted) window.history.replaceState(window.history.state, "", pathname + wanted);
  const root = document.documentElement.style;
  if (root.fontSize !== data.size) root.fontSize = data.size;
  let style = document.getElementById(TAGS);
  if (!style) {
    style = document.createElement("style");
    style.id = TAGS;
    document.head.append(style);
  }
  const ground = getComputedStyle(parentElement).getPropertyValue("--st-background-color").trim();
  const filled = '[data-testid="stBaseButton-primary"]:not(:disabled)';
  const rule = `[data-testid="stMultiSelect"] :is([data-tag], [data-tag] *), ${filled}, ${filled} * ` +
    `{ color: ${ground} !important; }`;
  if (ground && style.textContent !== rule) style.textContent = rule;
}
