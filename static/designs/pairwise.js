// Two items and one choice: by button, or by arrow key wherever the focus is. Texts are only read: to press them chooses
// nothing.

import { run } from "../hit.js";
import * as keys from "../hit/keys.js";
import { choose, native } from "../hit/native.js";
import { all } from "../hit/page.js";
import { submit } from "../hit/sending.js";
import { words } from "../hit/words.js";
import * as scrolling from "./pairwise/scrolling.js";

const DOES_MORE = "button, a, summary";        // what Enter presses

const radios = (hit) => all(hit.fieldset, `[name="${hit.name}preferred"]`);

// Where the choice submits: the next page leads back to it. Who is about to say something besides presses the button.
const atOnce = (hit) => Boolean(hit.fieldset.querySelector("[data-at-once]")) && !hit.form.querySelector(".remarks[open]");

function begin(hit) {
  scrolling.begin(hit);
  hit.fieldset.addEventListener("input", (event) => { if (atOnce(hit) && radios(hit).includes(event.target)) submit(hit, event); });
}

function press(hit, event) {
  if (keys.taken(event) || keys.press(hit, event) || keys.withModifier(event)) return;
  if (event.key === "Enter") enter(hit, event);
  else if (!scrolling.scrolls(event)) pressArrow(hit, event);
}

// A key that is held from the last HIT on must not answer this one.
function enter(hit, event) {
  if (event.repeat) event.preventDefault();
  else if (!event.target.matches(DOES_MORE)) submit(hit, event);
}

function pressArrow(hit, event) {
  const radio = radios(hit).find(({ dataset }) => dataset.key === event.key);
  if (!radio) return;
  event.preventDefault();
  if (event.repeat) return;
  choose(hit, radio);
  radio.focus({ preventScroll: true });
  radio.scrollIntoView({ block: "nearest" });
  if (atOnce(hit)) submit(hit, event);
}

function drawn(hit) {
  const chosen = radios(hit).find(({ checked }) => checked)?.value;
  for (const side of all(hit.fieldset, "[data-side]")) side.toggleAttribute("data-chosen", side.dataset.side === chosen);
}

const remains = (_count, hit) => (hit.called || atOnce(hit) ? words("choose") : words("Choose, then submit"));

run(native({ begin, resize: scrolling.fit, press, drawn, remains }));
