// Keys that mean the same in every design, wherever the focus is: Ctrl+Enter submits, ? lists the keys, Escape closes the
// list.

import { announce } from "./page.js";
import { submit } from "./sending.js";
import { words } from "./words.js";

const TAKES_KEYS = "select, textarea, [contenteditable], input:not([type=range], [type=radio], [type=checkbox])";

const BY_INPUT_METHOD = ["Process", "Unidentified"];     // what a browser calls keys while an input method reads them
const QUESTION_MARKS = ["?", "؟", "？"];

// Whether the focused control, a text or a list, takes this key.
export const taken = ({ target }) => target.matches(TAKES_KEYS);

export const withModifier = ({ ctrlKey, metaKey, altKey }) => ctrlKey || metaKey || altKey;

/**
 * Return the letter, digit or hyphen that a key stands for on any keyboard: AZERTY writes "-" by the key that is "6" with
 * Shift, and a Cyrillic keyboard has another letter where a Latin one has "a".
 */
export function latinKey({ key = "", code = "", shiftKey }) {
  const written = /^[a-z0-9]$/i.test(key);
  const letter = /^Key([A-Z])$/.exec(code)?.[1];
  const other = shiftKey ? undefined : /^(?:Digit|Numpad)([0-9])$/.exec(code)?.[1] ?? (code === "Minus" ? "-" : undefined);
  const place = key.length === 1 || BY_INPUT_METHOD.includes(key) ? letter ?? other : undefined;
  return (written ? key : place ?? key).toLowerCase();
}

/** Whether a key asks for the list of keys. */
export const isQuestionMark = ({ key }) => QUESTION_MARKS.includes(key);

/** Whether a key is a slash, also in its place on a keyboard that has no slash, such as an Arabic one. */
export const isSlash = ({ key, code }) => key === "/" || (code === "Slash" && (BY_INPUT_METHOD.includes(key) || /^[^\x00-\x7F]$/.test(key)));

// True where the key is one of these.
export function press(hit, event) {
  if (event.key === "Escape") hit.form.querySelector(".keys").open = false;
  else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(hit, event);
  else if (isQuestionMark(event) && !withModifier(event)) toggleList(hit);
  else return false;
  return true;
}

/** Scroll to the control that a key is for. */
export function showControl(event) {
  if (event.target.matches("input") && !isQuestionMark(event) && !withModifier(event)) {
    const control = event.target.closest(".track") ?? event.target;
    for (const part of [control.closest(".row") ?? control, control]) part.scrollIntoView({ block: "nearest" });
  }
}

function toggleList(hit) {
  const keys = hit.form.querySelector(".keys");
  keys.open = !keys.open;
  keys.scrollIntoView({ block: "nearest" });
  announce(keys.open ? keys.querySelector("dl").textContent.replace(/\s+/g, " ") : words("Keys hidden."));
}
