// Tabs of panels, of which one is shown. Without this file they are links to the same page with another panel.

/** Let `nav`, whose links have `data-tab`, show the panel of its `data-panel`. The address keeps the choice as `parameter`. */
export function makeTabs(nav, parameter) {
  return makeTabsWith(nav, (name, isFirst) => {
    const address = new URL(location.href);
    address.searchParams.set(parameter, name);
    if (isFirst) address.searchParams.delete(parameter);
    history.replaceState(null, "", address);
  });
}

/**
 * Make tabs of `nav`, call `onChoice` with the name of each chosen tab and whether it is the first, and return the
 * function that shows a tab by its name.
 */
export function makeTabsWith(nav, onChoice) {
  const tabs = [...nav.querySelectorAll("[data-tab]")];
  const panelOf = (tab) => document.querySelector(`[data-panel="${tab.dataset.tab}"]`);
  nav.setAttribute("role", "tablist");
  for (const tab of tabs) {
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", panelOf(tab).id);
    panelOf(tab).setAttribute("role", "tabpanel");
  }

  function mark(shown) {
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab === shown));
      tab.toggleAttribute("aria-current", false);
      tab.tabIndex = tab === shown ? 0 : -1;
      panelOf(tab).hidden = tab !== shown;
    }
  }

  function choose(tab) {
    mark(tab);
    onChoice(tab.dataset.tab, tab === tabs[0]);
  }

  nav.addEventListener("click", (event) => {
    const tab = event.target.closest("[data-tab]");
    if (!tab || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    choose(tab);
  });
  nav.addEventListener("keydown", (event) => {
    const place = tabs.indexOf(event.target);
    const next = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (event.key === " ") choose(event.target);
    else if (next === undefined) return;
    else {
      const tab = tabs[(next + tabs.length) % tabs.length];
      tab.focus();
      choose(tab);
    }
    event.preventDefault();
  });
  mark(tabs.find((tab) => !panelOf(tab).hidden) ?? tabs[0]);
  return (name) => mark(tabs.find((tab) => tab.dataset.tab === name) ?? tabs[0]);
}
