// Long texts: folded until asked for, and the choice is kept for the HITs that follow.

import { all, stored } from "./page.js";
import { words } from "./words.js";

const MOST_LINES = 12;         // what is shown whole in any case; the stylesheet folds to fewer, so that folding is worth it
const UNFOLDED = "easel:texts-unfolded";

const wanted = () => stored("localStorage", (storage) => storage.getItem(UNFOLDED)) !== null;

const rows = (hit) => all(hit.fieldset, ".show-all").map((button) => button.closest(".row") ?? button.closest(".item"));

export function begin(hit) {
  const unfolded = wanted();
  for (const element of rows(hit)) {
    const button = element.querySelector(".show-all");
    show(element, unfolded);
    button.addEventListener("click", () => choose(element, button.getAttribute("aria-expanded") === "false"));
  }
}

export function fit(hit) {
  for (const element of rows(hit)) show(element, element.querySelector(".show-all").getAttribute("aria-expanded") === "true");
}

function choose(element, unfolded) {
  stored("localStorage", (storage) => (unfolded ? storage.setItem(UNFOLDED, "yes") : storage.removeItem(UNFOLDED)));
  show(element, unfolded);
  element.scrollIntoView({ block: "nearest" });
}

function show(element, unfolded) {
  const text = element.querySelector(".text");
  const button = element.querySelector(".show-all");
  text.classList.remove("folded");
  const long = !text.querySelector("img, audio, video") && text.scrollHeight > (MOST_LINES + 0.5) * parseFloat(getComputedStyle(text).lineHeight);
  text.classList.toggle("folded", long && !unfolded);
  button.hidden = !long;
  button.setAttribute("aria-expanded", String(unfolded));
  button.textContent = unfolded ? words("Show less") : words("Show all");
}
