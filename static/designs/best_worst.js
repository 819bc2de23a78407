// Best-worst scaling: the radio buttons of the plain form, kept on different items.

import { run } from "../hit.js";
import { rowOfKey } from "../hit/letters.js";
import { changed, native } from "../hit/native.js";
import { all, announce } from "../hit/page.js";
import { words } from "../hit/words.js";

const OTHER = { best: "worst", worst: "best" };
const STEPS = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 };

const column = (hit, end) => all(hit.fieldset, `[name="${hit.name}${end}"]:enabled`);
const endOf = (hit, radio) => radio.name.slice(hit.name.length);
const chosen = (hit, name) => column(hit, name).find(({ checked }) => checked);
const label = (radio) => document.getElementById(`${radio.name}-${radio.value}`).textContent;
const itemName = (hit, radio) => document.getElementById(`${hit.name}text-${radio.value}`).textContent.trim().slice(0, 30);

// What follows from a choice in the one column for the other one.
function follow(hit, radio) {
  const end = endOf(hit, radio);
  if (!(end in OTHER)) return;
  const other = chosen(hit, OTHER[end]);
  if (other?.value === radio.value) other.checked = false;
  if (column(hit, end).length === 2) column(hit, OTHER[end]).find(({ value }) => value !== radio.value).checked = true;
}

function begin(hit) {
  // Before the listener that draws and keeps a draft.
  hit.fieldset.addEventListener("input", ({ target }) => follow(hit, target), { capture: true });
  hit.fieldset.addEventListener("keydown", (event) => step(hit, event));
}

// Arrow keys choose as they go; the item of the other column is passed over, so that passing by takes nothing away.
function step(hit, event) {
  const { target, key } = event;
  if (!(key in STEPS) || target.type !== "radio" || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const end = endOf(hit, target);
  const radios = column(hit, end);
  const taken = chosen(hit, OTHER[end])?.value;
  const count = radios.length;
  let at = radios.indexOf(target);
  do at = (at + STEPS[key] + count) % count; while (radios[at].value === taken && count > 2);
  take(hit, radios[at]);
}

function press(hit, event) {
  const row = rowOfKey(hit, event);
  if (row) take(hit, row.querySelector(`.${event.shiftKey ? "worst" : "best"} input`));
}

function take(hit, radio) {
  radio.focus();
  if (hit.sending || radio.checked || radio.disabled) return;
  radio.checked = true;
  follow(hit, radio);
  hit.means = "keyboard";
  changed(hit, radio);
}

// Said in the words of the columns.
function drawn(hit) {
  const [best, worst] = ["best", "worst"].map((name) => chosen(hit, name));
  const chosenNow = [best, worst].filter(Boolean).map((radio) => `${label(radio)}: ${itemName(hit, radio)}`).join(", ");
  const rest = toChoose(hit);
  if (hit.changed && chosenNow !== hit.said) announce(`${chosenNow}.${rest && ` ${rest}.`}`);
  hit.said = chosenNow;
}

function toChoose(hit) {
  const left = ["best", "worst"].filter((name) => column(hit, name).length && !chosen(hit, name)).map((name) => label(column(hit, name)[0]));
  if (!left.length) return "";
  const [one, other] = left;
  return other ? words("Still to choose: %(one)s and %(other)s", { one, other }) : words("Still to choose: %(one)s", { one });
}

run(native({ begin, press, drawn, remains: (_count, hit) => toChoose(hit) }));
