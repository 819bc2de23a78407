// Keys of the page Adjudicate: 1 to 9 choose a label, n opens the next item, u takes the last label back.

for (const hint of document.querySelectorAll("[data-with-keys]")) hint.hidden = false;

const isTyping = (target) => target.closest("input, textarea, select, [contenteditable]") !== null;

let hasSent = false; // a key held down sends one label

document.addEventListener("submit", () => { hasSent = true; });
window.addEventListener("pageshow", () => { hasSent = false; });

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || hasSent || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  const pressed = /^[1-9]$/.test(event.key)
    ? document.querySelector(`.label-choices button[data-key="${event.key}"]:enabled`)
    : { n: document.querySelector(".skip-item"), u: document.querySelector("#undo button") }[event.key];
  if (!pressed) return;
  event.preventDefault();
  pressed.click();
});
