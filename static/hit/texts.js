// Long texts, and what stands beside them: folded until asked for, and the choice is kept for the HITs that follow.

import { all, stored } from "./page.js";
import { words } from "./words.js";

const MOST_LINES = 12;         // what is shown whole in any case; the stylesheet folds to fewer, so that folding is worth it
const UNFOLDED = "easel:texts-unfolded";

const wanted = () => stored("localStorage", (storage) => storage.getItem(UNFOLDED)) !== null;

const buttons = (hit) => all(hit.fieldset, ".show-all");
const textOf = (button) => document.getElementById(button.getAttribute("aria-controls"));

export function begin(hit) {
  const unfolded = wanted();
  for (const button of buttons(hit)) {
    show(button, unfolded);
    button.addEventListener("click", () => choose(button, button.getAttribute("aria-expanded") === "false"));
  }
}

export function fit(hit) {
  for (const button of buttons(hit)) show(button, button.getAttribute("aria-expanded") === "true");
}

function choose(button, unfolded) {
  stored("localStorage", (storage) => (unfolded ? storage.setItem(UNFOLDED, "yes") : storage.removeItem(UNFOLDED)));
  show(button, unfolded);
  (button.closest(".row, .beside-items > div") ?? button.closest(".item")).scrollIntoView({ block: "nearest" });
}

function show(button, unfolded) {
  const text = textOf(button);
  text.classList.remove("folded");
  const long = !text.querySelector("img, audio, video") && text.scrollHeight > (MOST_LINES + 0.5) * parseFloat(getComputedStyle(text).lineHeight);
  text.classList.toggle("folded", long && !unfolded);
  button.hidden = !long;
  button.setAttribute("aria-expanded", String(unfolded));
  button.textContent = unfolded ? words("Show less") : words("Show all");
}
