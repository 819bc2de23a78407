// A HIT of a design that brings no script: the form as the server sent it, with drafts and sending like every other.

import { run } from "../hit.js";
import { announce } from "../hit/page.js";
import { keep, say } from "../hit/sending.js";

function read(fieldset) {
  const hit = { fieldset, form: fieldset.closest("form") };
  return Object.assign(hit, {
    entries: () => Object.fromEntries(entered(hit).map(([name, value]) => [name, { value }])),
    restore: (kept) => restore(hit, kept),
    fields: () => entered(hit),
    ready: () => ready(hit),
    draw: () => draw(hit),
  });
}

function begin(hit) {
  hit.fieldset.addEventListener("input", () => change(hit));
  draw(hit);
}

const controls = (hit) => [...hit.fieldset.elements].filter(({ name }) => name);
const entered = (hit) => [...new FormData(hit.form)].filter(([name]) => controls(hit).some((control) => control.name === name));
// Of radio buttons, one for all of a name.
const missing = (hit) => controls(hit).filter((control, place, others) =>
  !control.validity.valid && others.findIndex(({ name }) => name === control.name) === place);

function restore(hit, kept) {
  for (const [name, { value }] of Object.entries(kept)) {
    const control = hit.form.elements[name];
    if (control) control.value = value;
  }
}

function change(hit) {
  hit.changed = true;
  hit.problem = false;
  draw(hit);
  keep(hit);
}

function draw(hit) {
  const left = missing(hit).length;
  const button = hit.form.querySelector(".primary");
  if (!hit.problem) say(hit, left ? `${left} left` : "");
  button.setAttribute("aria-disabled", String(left > 0 || Boolean(hit.sending)));
  button.textContent = hit.sending ? "Sending …" : button.dataset.send;
}

function ready(hit) {
  const left = missing(hit);
  if (!left.length) return true;
  left[0].focus();
  say(hit, `${left.length} left`);
  announce(`${left.length} left.`);
  return false;
}

run({ read, begin, press: () => {}, resize: () => {} });
