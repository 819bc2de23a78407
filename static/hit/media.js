// Images, recordings and videos that do not load: said at the item, and reported by one press while the answer stays.

import { all, announce } from "./page.js";
import { ask } from "./sending.js";
import { words } from "./words.js";

const MEDIA = ".content :is(img, audio, video)";

// `arrived` is called when something has come that takes room.
export function begin(hit, arrived) {
  for (const part of all(hit.fieldset, MEDIA)) {
    // No event follows for those that are already loaded or given up.
    if (part.error || (part.complete && part.naturalWidth === 0)) fail(hit, part);
    part.addEventListener("error", () => fail(hit, part));
    for (const event of ["load", "loadedmetadata"]) part.addEventListener(event, arrived);
  }
  for (const button of all(hit.fieldset, ".broken button")) {
    button.addEventListener("click", (event) => { event.preventDefault(); report(hit, button); });
  }
}

// What all items share is said at the first.
function fail(hit, part) {
  part.classList.add("visually-hidden");       // its words still name the control
  const note = (part.closest(".item") ?? hit.fieldset).querySelector(".broken");
  if (!note || note.classList.contains("seen")) return;
  note.classList.add("seen");
  announce(note.querySelector(".script-only").textContent);
}

async function report(hit, button) {
  const form = new URLSearchParams({ broken: button.value });
  for (const name of ["token", "hit"]) form.set(name, hit.form.elements[name].value);
  button.disabled = true;
  const reply = await ask("POST", form);
  button.disabled = false;
  const said = reply?.ok ? words("Reported, thank you. Please go on as well as you can.") : words("This could not be reported. Please try again.");
  if (reply?.ok) button.closest(".broken").textContent = said;
  announce(said);
}
