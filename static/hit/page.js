// What every annotator's page needs, whatever it asks.

const ANNOUNCE_DELAY_MS = 700;

export const all = (root, selector) => [...root.querySelectorAll(selector)];
/** Which of two elements comes first on the page, for `sort`. */
export const inDocument = (one, other) => (one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1);
export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Show around what a press asks for first, until the next press. */
export function ring(element) {
  if (!element) return;
  element.classList.add("asked-for");
  for (const event of ["pointerdown", "keydown"]) {
    document.addEventListener(event, () => element.classList.remove("asked-for"), { once: true, capture: true });
  }
}

// A debounced call: only the last of several within `delay` ms happens.
export function later(delay) {
  let timer;
  return (action) => { clearTimeout(timer); timer = setTimeout(action, delay); };
}

const announceSoon = later(ANNOUNCE_DELAY_MS);

/** Tell a screen reader; a sentence that ends in a text with a full stop of its own ends once. */
export function announce(words) {
  announceSoon(() => { say(words.replace(/([.!?…。！？])[.。]+(?=\s|$)/g, "$1")); });
}

/** Forget what was announced, and what was about to be: it is of a page that is gone. */
export function hush() {
  announceSoon(() => {});
  say("");
}

function say(words) {
  document.getElementById("announcer").textContent = words;
}

// Return the result of `action`, or null in frames and private windows without storage.
export function stored(storage, action) {
  try { return action(window[storage]); } catch { return null; }
}
