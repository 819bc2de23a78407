// Keys of the page Adjudicate: 1 to 9 choose a label, n opens the next item, u takes the last label back.

for (const hint of document.querySelectorAll("[data-with-keys]")) hint.hidden = false;

const isTyping = (target) => target.closest("input, textarea, select, [contenteditable]") !== null;

/** Return the digit of a key; French keyboards write signs with the keys of digits. */
function digitOfKey(event) {
  if (/^[1-9]$/.test(event.key)) return event.key;
  return event.shiftKey ? "" : /^(?:Digit|Numpad)([1-9])$/.exec(event.code)?.[1] ?? "";
}

let hasSent = false; // two quick presses send one label

document.addEventListener("submit", () => { hasSent = true; });
window.addEventListener("pageshow", () => { hasSent = false; });

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || hasSent || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  const digit = digitOfKey(event);
  const pressed = digit
    ? document.querySelector(`.label-choices button[data-key="${digit}"]:enabled`)
    : { n: document.querySelector(".skip-item"), u: document.querySelector("#undo button") }[event.key.toLowerCase()];
  if (!pressed) return;
  event.preventDefault();
  pressed.click();
});
