// What annotators say beside the answer: comments, and that something is wrong with an item. Plain fields below the HIT,
// which no design knows of.

import { all } from "./page.js";

const FIELDS = ".remarks :is(select, textarea)";

const fields = (hit) => all(hit.form, FIELDS);

export const isOne = (element) => element.matches(FIELDS);

/** [name, words] of those that say something. */
export const said = (hit) => fields(hit).filter(({ value }) => value).map(({ name, value }) => [name, value]);

/** The same for a draft, and from one. */
export const entries = (hit) => Object.fromEntries(said(hit).map(([name, value]) => [name, { value }]));

export function restore(hit, kept) {
  for (const field of fields(hit)) if (field.name in kept) field.value = kept[field.name].value;
  const fold = hit.form.querySelector(".remarks");
  if (fold && said(hit).length) fold.open = true;
}
