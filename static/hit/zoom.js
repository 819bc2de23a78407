// Images in a dialog, as large as the window allows, and on a press of one there in its own size. Each image has a button
// for the keyboard; a press on the image does the same.

import { all } from "./page.js";
import { words } from "./words.js";

let dialog;                    // one for the page, made when it is first needed

export function begin(hit) {
  for (const item of all(hit.fieldset, ".item, .beside-items dd")) {
    const images = all(item, ".content img").filter((image) => !image.closest("a, .item .beside-items") || image.closest("dd") === item);
    if (images.length) item.append(buttonsFor(item, images));
  }
}

function buttonsFor(item, images) {
  const letter = item.closest("[data-letter]")?.dataset.letter ?? item.closest(".side")?.getAttribute("aria-label") ?? "";
  const group = Object.assign(document.createElement("span"), { className: "zooms" });
  images.forEach((image, at) => {
    const name = [letter, images.length > 1 ? at + 1 : ""].filter(Boolean).join(" ");
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "⤢" });
    button.setAttribute("aria-label", name ? `${words("Enlarge the image")}: ${name}` : words("Enlarge the image"));
    button.addEventListener("click", () => open(image, button));
    image.addEventListener("mousedown", (event) => event.preventDefault());       // what has the focus keeps it
    image.addEventListener("click", () => open(image, button));
    image.addEventListener("error", () => button.remove());
    group.append(button);
  });
  return group;
}

function open(image, button) {
  dialog ??= make();
  const shown = dialog.querySelector("img");
  const before = document.activeElement;
  const goBack = before && before !== document.body ? before : button;
  Object.assign(shown, { src: image.currentSrc || image.src, alt: image.alt, className: "" });
  dialog.addEventListener("close", () => goBack.focus({ preventScroll: true }), { once: true });
  dialog.showModal();
}

function make() {
  const made = Object.assign(document.createElement("dialog"), { className: "enlarged" });
  const form = Object.assign(document.createElement("form"), { method: "dialog" });
  const image = document.createElement("img");
  form.append(Object.assign(document.createElement("button"), { textContent: words("Close") }));
  made.setAttribute("aria-label", words("Enlarged image"));
  made.append(form, image);
  image.addEventListener("click", () => image.classList.toggle("whole"));
  made.addEventListener("click", ({ target }) => { if (target === made) made.close(); });
  made.addEventListener("keydown", (event) => event.stopPropagation());      // no key there answers the task
  document.body.append(made);
  return made;
}
