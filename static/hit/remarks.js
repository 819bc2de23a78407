// What annotators say beside the answer: comments, and that something is wrong with an item. Plain fields below the HIT,
// which no design knows of. Some campaigns ask for comments by open fields above the button, and may require them.

import { all } from "./page.js";
import { say } from "./sending.js";
import * as unjudged from "./unjudged.js";

const FIELDS = ".remarks :is(select, textarea), .reason textarea";
const ASKED = ".reason textarea";

const fields = (hit) => all(hit.form, FIELDS);

export const isOne = (element) => element.matches(FIELDS);

/** [name, words] of those that say something. */
export const said = (hit) => fields(hit).filter(({ value }) => value).map(({ name, value }) => [name, value]);

/** The same for a draft, and from one. */
export const entries = (hit) => Object.fromEntries(said(hit).map(([name, value]) => [name, { value }]));

export function restore(hit, kept) {
  for (const field of fields(hit)) if (field.name in kept) field.value = kept[field.name].value;
  const fold = hit.form.querySelector(".remarks");
  if (fold && fields(hit).some((field) => fold.contains(field) && field.value)) fold.open = true;
}

// In an open field Ctrl+Enter submits, whatever the design: it does not get to see this.
document.addEventListener("keydown", (event) => {
  const { target, key, ctrlKey, metaKey } = event;
  if (key !== "Enter" || !(ctrlKey || metaKey) || !target.matches?.(ASKED)) return;
  event.stopPropagation();
  target.form.requestSubmit();
}, true);

/** The first open field without a comment, or undefined. */
export const firstEmpty = (hit) => all(hit.form, ASKED).find(({ value }) => !value.trim());

/** Return whether no required comment is missing; else say so beside each field that lacks one, and go to the first. */
export function ready(hit) {
  const asked = all(hit.form, ASKED);
  for (const field of asked) mark(field, isMissing(hit, field));
  const missing = asked.find((field) => field.hasAttribute("aria-invalid"));
  if (!missing) return true;
  missing.focus();
  say(hit, problemOf(missing).textContent, "warning");
  return false;
}

/** Take back what was said about a field, which has a comment now. */
export function accept(field) {
  if (field.matches(ASKED) && field.value.trim()) mark(field, false);
}

// An item that cannot be judged needs no comment, and neither does a HIT in which nothing is left to ask about.
function isMissing(hit, field) {
  if (field.getAttribute("aria-required") !== "true" || field.value.trim()) return false;
  const out = unjudged.marked(hit);
  return !out.has(field.name.replace("comment-", "")) && !unjudged.leavesNothing(hit, out);
}

const problemOf = (field) => document.getElementById(`${field.id}-problem`);

function mark(field, wrong) {
  if (wrong) field.setAttribute("aria-invalid", "true");
  else field.removeAttribute("aria-invalid");
  if (problemOf(field)) problemOf(field).hidden = !wrong;
}
