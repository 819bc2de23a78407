// Keys that mean the same in every design, wherever the focus is: Ctrl+Enter submits, ? lists the keys, Escape closes the
// list.

import { announce } from "./page.js";
import { submit } from "./sending.js";
import { words } from "./words.js";

const TAKES_KEYS = "select, textarea, [contenteditable], input:not([type=range], [type=radio], [type=checkbox])";

// Whether a key that is pressed here is for the control that has the focus: text, or a list.
export const taken = ({ target }) => target.matches(TAKES_KEYS);

export const withModifier = ({ ctrlKey, metaKey, altKey }) => ctrlKey || metaKey || altKey;

// True where the key is one of these.
export function press(hit, event) {
  if (event.key === "Escape") hit.form.querySelector(".keys").open = false;
  else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(hit, event);
  else if (event.key === "?" && !withModifier(event)) toggleList(hit);
  else return false;
  return true;
}

function toggleList(hit) {
  const keys = hit.form.querySelector(".keys");
  keys.open = !keys.open;
  keys.scrollIntoView({ block: "nearest" });
  announce(keys.open ? keys.querySelector("dl").textContent.replace(/\s+/g, " ") : words("Keys hidden."));
}
