// Parts of a page that scripts fetch again and put in the place of the old ones.

/** Return a function to call when a request starts; what it returns tells whether that request is still the newest. */
export function newestRequest() {
  let newest = 0;
  return () => {
    newest += 1;
    const own = newest;
    return () => own === newest;
  };
}

/** Fetch a part of a page, with the options of `fetch`. The promise fails if the connection does. */
export const fetchPart = (address, options = {}) =>
  fetch(address, { ...options, headers: { "X-Easel": "fetch", accept: "text/html" } });

/** Return the content of fetched HTML. */
export function parsePart(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

/** Replace an element by a newer version. The focus, a search being typed, scroll positions and open details are kept. */
export function replacePart(old, next) {
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const counterpart = focused && findCounterpart(next, focused);
  if (counterpart?.type === "search") counterpart.value = focused.value;
  const areOpen = [...old.querySelectorAll("details")].map((details) => details.open);
  const offsets = [...old.querySelectorAll(".scroll")].map((element) => [element.scrollLeft, element.scrollTop]);
  old.replaceWith(next);
  next.querySelectorAll(".scroll").forEach((element, i) => element.scrollTo(...(offsets[i] ?? [0, 0])));
  next.querySelectorAll("details").forEach((details, i) => { details.open = areOpen[i] ?? details.open; });
  counterpart?.focus({ preventScroll: true });
  if (counterpart?.type === "search") counterpart.setSelectionRange(focused.selectionStart, focused.selectionEnd);
}

/** Return the element of a newer part that corresponds to the focused one: by key or id, else by link or name. */
function findCounterpart(next, focused) {
  const key = focused.dataset.key ?? focused.id;
  const attributes = ["href", "name"];
  const isSame = (element) => element.tagName === focused.tagName
    && attributes.every((name) => element.getAttribute(name) === focused.getAttribute(name));
  return (key && next.querySelector(`[data-key="${CSS.escape(key)}"], [id="${CSS.escape(key)}"]`))
    || [...next.querySelectorAll("a, button, input, select, .scroll")].find(isSame);
}
