// Long texts side by side: each scrolls in its place, and takes the other along by the same share of its length.

import { all } from "../../hit/page.js";

const texts = (hit) => all(hit.fieldset, ".side .item");
const room = ({ scrollHeight, clientHeight }) => scrollHeight - clientHeight;

// Whether an arrow key that is pressed here scrolls a text.
export const scrolls = ({ target, key }) => ["ArrowUp", "ArrowDown"].includes(key) && target.matches(".side .item[tabindex]");

export function begin(hit) {
  const both = texts(hit);
  for (const text of both) text.addEventListener("scroll", () => follow(text, both.find((other) => other !== text)));
  fit(hit);
}

// Only what has something to scroll is a stop for the keyboard.
export function fit(hit) {
  for (const text of texts(hit)) {
    if (room(text) > 1) text.tabIndex = 0;
    else text.removeAttribute("tabindex");
  }
}

// What follows scrolls too: where it was sent it has arrived, and must send nobody back.
const sent = new WeakMap();

function follow(text, other) {
  const arrived = sent.get(text) === text.scrollTop;
  sent.delete(text);
  if (arrived || room(text) < 1) return;
  const before = other.scrollTop;
  other.scrollTop = text.scrollTop / room(text) * room(other);
  if (other.scrollTop !== before) sent.set(other, other.scrollTop);
}
