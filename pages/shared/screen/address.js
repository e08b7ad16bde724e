// Keeps the address up to date, reloads a page whose session is gone, makes tags readable, and restores the focus.
//
// Streamlit's own `st.query_params` adds an entry to the browser's history for every step of a slider, and *Back* would go
// through all of them. This script replaces the entry.
//
// A browser whose session the server has dropped gets a new one that has drawn nothing: widgets move and nothing answers.
// So whenever a lost connection is back, the page asks whether its own session still exists, and reloads itself if not.
// The address brings back the settings; the page says what is lost.
//
// The tags of a multiselect and the labels of main buttons are white on the primary colour, 3.25:1 on a dark page. The
// page's background colour has at least 4.5:1 on it, light and dark.
//
// Streamlit disables a download button while its file is made, and the browser takes the focus away for good.
document.addEventListener("click", ({ target }) => {
  const container = target.closest('[data-testid="stDownloadButton"]');
  if (!container) return;
  const observer = new MutationObserver(() => {
    const button = container.querySelector("button:not(:disabled)");
    if (!button) return;
    observer.disconnect();
    if (document.activeElement === document.body) button.focus({ preventScroll: true });
  });
  observer.observe(container, { attributeFilter: ["disabled"], subtree: true });
});
const tagStyle = new CSSStyleSheet();
let tagRule;
document.adoptedStyleSheets.push(tagStyle);
// A server that has just started, or a flickering connection, may not know the session yet: it is lost only when the server
// has said so UNKNOWN_LIMIT times.
const RETRY_MILLISECONDS = 250, MAX_TRIES = 40, UNKNOWN_LIMIT = 3;
// Runs after the next frame: reading a colour makes the browser compute all styles that have just changed, and new curves
// would wait for it.
export default (component) => {
  let timer;
  const frame = requestAnimationFrame(() => { timer = setTimeout(() => update(component)); });
  return () => { cancelAnimationFrame(frame); clearTimeout(timer); };
};
let session, appElement, isOnline = true;
const readConnection = () => appElement.dataset.testConnectionState === "CONNECTED";
const observer = new MutationObserver(() => {
  const wasOnline = isOnline;
  isOnline = readConnection();
  if (isOnline && !wasOnline) checkSession(session);
});
function watchConnection(data) {
  session = data;
  const element = document.querySelector("[data-testid='stApp'][data-test-connection-state]");
  if (!element || element === appElement) return;
  appElement = element;
  isOnline = readConnection();
  observer.disconnect();
  observer.observe(appElement, { attributes: true, attributeFilter: ["data-test-connection-state"] });
}
// Reloads the page if the server no longer knows its session.
async function checkSession({ token, address }) {
  let numUnknown = 0;
  for (let numTries = 0; numTries < MAX_TRIES && isOnline && session.token === token; numTries += 1) {
    try {
      const response = await fetch(new URL(address, document.baseURI), {
        cache: "no-store", headers: { [HEADER]: token },
      });
      if (response.status === 404) numUnknown += 1;
      if (numUnknown === UNKNOWN_LIMIT) window.location.reload();
      if (numUnknown === UNKNOWN_LIMIT || (response.status < 500 && response.status !== 404)) return;
    } catch (error) { /* The connection is gone again, or not quite back. */ }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MILLISECONDS));
  }
}
function update({ data, parentElement }) {
  // Another session answers in place of this one: if a run was cut short before the connection was lost, Streamlit asks
  // for one by itself, with the address that was opened first. The present address holds what was changed since.
  if (session && session.token !== data.token) return window.location.reload();
  watchConnection(data);
  const { pathname, search } = window.location;
  const query = data.query ? `?${data.query}` : "";
  if (search !== query) window.history.replaceState(window.history.state, "", pathname + query);
  const rootStyle = document.documentElement.style;
  if (rootStyle.fontSize !== data.size) rootStyle.fontSize = data.size;
  const background = getComputedStyle(parentElement).getPropertyValue("--st-background-color").trim();
  const mainButton = '[data-testid="stBaseButton-primary"]:not(:disabled)';
  const rule = `[data-testid="stMultiSelect"] :is([data-tag], [data-tag] *), ${mainButton}, ${mainButton} * ` +
    `{ color: ${background} !important; }`;
  if (background && tagRule !== rule) tagStyle.replaceSync((tagRule = rule));
}
