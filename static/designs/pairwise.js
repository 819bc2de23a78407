// Two items and a choice by each criterion: by button, or by arrow key wherever the focus is. Texts are only read: to
// press them chooses nothing.

import { run } from "../hit.js";
import * as keys from "../hit/keys.js";
import { choose, native } from "../hit/native.js";
import { all } from "../hit/page.js";
import { submit } from "../hit/sending.js";
import { words } from "../hit/words.js";
import { followContext } from "./pairwise/context.js";
import { arrange } from "./pairwise/tabs.js";

const DOES_MORE = "button, a, summary, audio, video";      // what Enter presses
const OWN_ARROWS = "audio, video";                         // what arrow keys wind

const radios = (hit) => all(hit.fieldset, `[name="${hit.name}preferred"]`);
const chosen = (hit) => radios(hit).find(({ checked }) => checked);

// Where the choice submits: the next page leads back to it. Who is about to say something besides presses the button.
const atOnce = (hit) => Boolean(hit.fieldset.querySelector("[data-at-once]")) && !hit.form.querySelector(".remarks[open]");

function begin(hit) {
  arrange(hit);
  followContext(hit);
  hit.fieldset.addEventListener("input", (event) => { if (atOnce(hit) && radios(hit).includes(event.target)) submit(hit, event); });
}

function press(hit, event) {
  if (keys.taken(event) || keys.press(hit, event) || keys.withModifier(event)) return;
  if (event.key === "Enter") enter(hit, event);
  else if (!event.target.matches(OWN_ARROWS)) pressArrow(hit, event) || goToCriterion(hit.whole, event);
}

// A key that is held from the last HIT on must not answer this one.
function enter(hit, event) {
  if (event.repeat) event.preventDefault();
  else if (!event.target.matches(DOES_MORE)) submit(hit, event);
}

// True where the key is one of the arrows that choose.
function pressArrow(hit, event) {
  const radio = radios(hit).find(({ dataset }) => dataset.key === event.key);
  if (!radio) return false;
  event.preventDefault();
  if (event.repeat) return true;
  choose(hit, radio);
  goTo(radio);
  if (atOnce(hit)) submit(hit, event);
  return true;
}

// Of several criteria each has its number.
function goToCriterion({ parts }, event) {
  const part = parts.length > 1 && parts[Number(keys.latinKey(event)) - 1];
  if (part) goTo(chosen(part) ?? radios(part)[0]);
}

function goTo(radio) {
  radio.focus({ preventScroll: true });
  radio.scrollIntoView({ block: "nearest" });
}

function drawn(hit) {
  const value = chosen(hit)?.value;
  for (const side of all(hit.fieldset, "[data-side]")) side.toggleAttribute("data-chosen", side.dataset.side === value);
}

function remains(_count, hit) {
  if (hit.called) return words("choose");
  return atOnce(hit) ? words("Your choice submits at once") : words("Choose, then submit");
}

function resize(hit) {
  arrange(hit);
  followContext(hit);
}

run(native({ begin, press, resize, drawn, remains }));
