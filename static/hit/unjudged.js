// What cannot be judged: of each item a list of reasons. What is said of an item takes its controls out of the HIT; where
// too few others are left to be compared, it takes out all.

import { all } from "./page.js";
import { words } from "./words.js";

const lists = (hit) => all(hit.form, ".cannot-judge select");

export const isOne = (element) => element.matches(".cannot-judge select");

/** [name, reason] of the items of which one is given. */
export const said = (hit) => lists(hit).filter(({ value }) => value).map(({ name, value }) => [name, value]);

/** The same for a draft, and from one. */
export const entries = (hit) => Object.fromEntries(said(hit).map(([name, value]) => [name, { value }]));

export function restore(hit, kept) {
  for (const list of lists(hit)) if (list.name in kept) list.value = kept[list.name].value;
}

/** The lists of the items that cannot be judged, by item. */
export const marked = (hit) => new Map(lists(hit).filter(({ value }) => value).map((list) => [itemOf(list), list]));

/** Whether too few items are left to ask about any. */
export function leavesNothing(hit, out) {
  const count = lists(hit).length;
  return count > 0 && count - out.size < Math.max(1, Number(hit.form.querySelector(".cannot-judge").dataset.fewest));
}

/** What follows for a HIT, or a part of it. */
export function draw(hit) {
  if (!lists(hit).length) return;
  const out = marked(hit), nothing = leavesNothing(hit, out);
  for (const control of hit.fieldset.elements) {
    if (control.name && !isOne(control) && !control.closest(".reason")) take(control, nothing || out.has(itemOf(control)));
  }
  for (const item of all(hit.form, "[data-item] > .item, [data-side] > .item")) tell(item, out.get(itemOf(item)));
}

const itemOf = (element) => {
  const part = element.closest("[data-item], [data-side]");
  return part?.dataset.item ?? part?.dataset.side;
};

function take(control, out) {
  control.disabled = out;
  if (out && ["radio", "checkbox"].includes(control.type)) control.checked = false;
}

// Beside the words of the item; its other parts are hidden by the stylesheet.
function tell(item, list) {
  item.toggleAttribute("data-unjudged", Boolean(list));
  if (!list) return;
  const reason = list.selectedOptions[0].textContent.trim();
  item.dataset.unjudged = list.options.length > 2 ? words("cannot be judged: %(reason)s", { reason }) : reason;
}
