// Links to pages are a landmark, one of them is that of the open page, and on a phone the sidebar closes behind them:
// Streamlit's own navigation does all three, but stands above everything else in the sidebar.
const PHONE = matchMedia("(max-width: 768px)");
export default ({ data, parentElement }) => {
  const navigation = parentElement.closest(".st-key-navigation");
  if (!navigation) return;
  navigation.setAttribute("role", "navigation");
  navigation.setAttribute("aria-label", "Pages");
  const update = () => {
    for (const link of navigation.querySelectorAll("a")) {
      if (link.textContent.endsWith(data.title)) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  };
  const close = ({ target }) => {
    const button = document.querySelector('[data-testid="stSidebarCollapseButton"] button');
    if (target.closest("a") && PHONE.matches && button) button.click();
  };
  update();
  // A group that opens draws its links then.
  const observer = new MutationObserver(update);
  observer.observe(navigation, { childList: true, subtree: true });
  navigation.addEventListener("click", close);
  return () => { observer.disconnect(); navigation.removeEventListener("click", close); };
};
