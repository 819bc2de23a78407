// A HIT, or a part of it, whose controls are those of its plain form: radio buttons, numbers, selects. Their values are
// drafts and answers as they stand; how each came about is noted for the items that it is about: the one of the nearest
// [data-item], or all.
//
// `native(more)` is a design for `run`, with what a design does besides: `begin(hit)`, `press(hit, event)`, `resize(hit)`,
// `check(hit)` before it is counted what is missing, `drawn(hit)` after each change, `complete(hit)`, false after saying what is wrong although every control has a value,
// `remains(count, hit)`, the words for so many controls without one.

import { all, announce, ring } from "./page.js";
import { tell } from "./parts.js";
import * as remarks from "./remarks.js";
import { keep, say } from "./sending.js";
import * as unjudged from "./unjudged.js";
import { words } from "./words.js";

const nothing = () => {};

const notFinished = (count) => words("Not finished yet: %(remains)s", { remains: left(count) });
const left = (count) => words("%(left)s left", { left: count });

export function native({
  begin = nothing, press = nothing, resize = nothing, check = nothing, drawn = nothing, complete = () => true, remains = left,
} = {}) {
  const draw = (hit) => { unjudged.draw(hit); check(hit); drawStatus(hit); drawn(hit); };
  return {
    read: (root, name) => Object.assign(read(root, name, draw, complete), { remains, lacks: remains === left ? notFinished : remains }),
    begin: (hit) => { listen(hit); begin(hit); draw(hit); },
    press,
    resize,
  };
}

function read(fieldset, name, draw, complete) {
  const hit = { fieldset, name, form: fieldset.closest("form"), shownAt: performance.now(), touches: new Map(), means: "" };
  hit.items = (fieldset.closest(".hit").dataset.items ?? "").split(" ").filter(Boolean);
  return Object.assign(hit, {
    entries: () => Object.fromEntries(entered(hit).map(([name, value]) => [name, { value }])),
    restore: (kept) => restore(hit, kept),
    fields: () => [...entered(hit), ...told(hit)],
    missing: () => missing(hit),
    ready: () => ready(hit) && complete(hit),
    draw: () => draw(hit),
  });
}

const isOf = (hit, control) => Boolean(control.name) && control.name.startsWith(hit.name) && !unjudged.isOne(control) && !remarks.isOne(control);
const named = (hit) => [...hit.fieldset.elements].filter((control) => isOf(hit, control));
const controls = (hit) => named(hit).filter((control) => !control.disabled);
const entered = (hit) => [...new FormData(hit.form)].filter(([name]) => named(hit).some((control) => control.name === name));

// Of radio buttons, one for all of a name.
export const missing = (hit) => controls(hit).filter((control, place, others) =>
  !control.validity.valid && others.findIndex(({ name }) => name === control.name) === place);

// ---- How answers came about ----

function listen(hit) {
  hit.fieldset.addEventListener("pointerdown", ({ pointerType }) => { hit.means = pointerType; }, { capture: true });
  hit.fieldset.addEventListener("keydown", () => { hit.means = "keyboard"; }, { capture: true });
  hit.fieldset.addEventListener("input", ({ target }) => { if (isOf(hit, target)) changed(hit, target); });
}

// After a change of a control, by whatever means: what follows from it.
export function changed(hit, control) {
  touch(hit, control);
  hit.changed = true;
  hit.problem = false;
  hit.draw();
  keep(hit);
}

function touch(hit, control) {
  const row = control.closest("[data-item]");
  for (const item of row ? [row.dataset.item] : hit.items) {
    const before = hit.touches.get(item) ?? { first: Math.round(performance.now() - hit.shownAt), changes: 0 };
    hit.touches.set(item, { ...before, changes: before.changes + 1, means: hit.means });
  }
}

const told = (hit) => [...hit.touches].flatMap(([item, { first, changes, means }]) => [
  [`${hit.name}first_touch_ms-${item}`, first],
  [`${hit.name}changes-${item}`, changes],
  [`${hit.name}input_kind-${item}`, means],
]);

// Chooses a radio button as a click on it would.
export function choose(hit, radio, means = "keyboard") {
  if (hit.sending || radio.checked || radio.disabled) return;
  hit.means = means;
  radio.checked = true;
  changed(hit, radio);
}

// ---- Drafts, and what is missing ----

function restore(hit, kept) {
  const boxes = named(hit).filter(({ type }) => type === "checkbox");
  if (boxes.some(({ name }) => name in kept)) for (const box of boxes) box.checked = box.name in kept;
  for (const [name, { value }] of Object.entries(kept)) {
    const control = hit.form.elements[name];
    if (control && control.type !== "checkbox" && name.startsWith(hit.name)) control.value = value;
  }
}

function drawStatus(hit) {
  const left = missing(hit).length;
  tell(hit, left && (hit.called || controls(hit).length > 1) ? hit.remains(left, hit) : "");
}

function ready(hit) {
  const left = missing(hit);
  if (!left.length) return true;
  const message = hit.lacks(left.length, hit);
  left[0].focus();
  ring(left[0].closest("[data-item], .choices"));
  say(hit, message, "warning");
  announce(`${message}.`);
  return false;
}

export const groups = (hit) => [...new Set(controls(hit).map(({ name }) => name))]
  .map((name) => all(hit.fieldset, `[name="${name}"]:enabled`));
