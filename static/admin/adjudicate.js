// Keys of the page Adjudicate: 1 to 9 choose a label, n opens the next item, u takes the last choice back.

import { latinKey, withModifier } from "../hit/keys.js";

const RELEASE_AFTER_MS = 5000;

for (const hint of document.querySelectorAll("[data-with-keys]")) hint.hidden = false;

const isTyping = (target) => target.closest("input, textarea, select, [contenteditable]") !== null;

/** Return the control that a key presses, nothing for other keys. */
function controlOfKey(key) {
  if (/^[1-9]$/.test(key)) return document.querySelector(`.label-choices button[data-key="${key}"]:enabled`);
  return { n: document.querySelector(".skip-item"), u: document.querySelector("#undo button") }[key];
}

let hasSent = false; // two quick presses, or a double click, send one label

document.addEventListener("submit", (event) => {
  if (hasSent) return event.preventDefault();
  hasSent = true;
  setTimeout(() => { hasSent = false; }, RELEASE_AFTER_MS); // the page may have been stopped from loading
});
window.addEventListener("pageshow", () => { hasSent = false; });

document.addEventListener("keydown", (event) => {
  if (withModifier(event) || event.repeat || hasSent || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  const pressed = controlOfKey(latinKey(event));
  if (!pressed) return;
  event.preventDefault();
  pressed.click();
});
