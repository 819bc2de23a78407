// Rows of radio buttons, one row for each item. A key that a button names in `data-key` chooses it in the row in hand, and
// the next row without an answer is gone on to; after the last one an open field for a comment, or the button that sends, is.
//
// `chosenByKeys(more)` is a design for `run`, with what `native` takes; `taken(hit, event)`, true for a key that the design
// has used itself; `chose(hit, row)` after a key has chosen.

import { announce, inDocument } from "./page.js";
import * as keys from "./keys.js";
import { choose, groups, native } from "./native.js";
import * as remarks from "./remarks.js";

export function chosenByKeys({ taken = () => false, chose = () => {}, ...more } = {}) {
  return native({ ...more, press: (hit, event) => { if (!taken(hit, event)) press(hit, event, chose); } });
}

function press(hit, event, chose) {
  const sends = event.key === "Enter" && keys.withModifier(event);
  if (keys.taken(event) && !sends) return;
  if (!keys.press(hit, event) && !keys.withModifier(event)) chooseByKey(hit, event, chose);
}

function chooseByKey(hit, event, chose) {
  const row = rowInHand(hit);
  const radio = row.find((one) => one.dataset.key === keys.latinKey(event));
  if (!radio) return;
  event.preventDefault();
  pick(hit, row, radio);
  chose(hit, row);
}

/** As a press of its key does: chooses, says so, and goes on. */
export function pick(hit, row, radio) {
  if (hit.sending) return;
  choose(hit, radio);
  hit.last = row;
  const about = radio.closest("[role=radiogroup]").getAttribute("aria-labelledby").split(" ");
  announce(`${words(radio.closest("label"))}: ${about.map((id) => words(document.getElementById(id))).join(", ")}`);
  goOn(hit, row);
}

const words = (element) => element.textContent.trim().replace(/\s+/g, " ");

/** The row with the focus, else the first without an answer, else the one that was chosen in last: its radio buttons. */
export function rowInHand(hit) {
  const rows = groups(hit);
  const item = document.activeElement?.closest("[data-item]");
  return rows.find(([radio]) => item?.contains(radio)) ?? rows.find(unanswered) ?? rows.find(([radio]) => radio === hit.last?.[0]) ?? rows[0];
}

const unanswered = (row) => !row.some((radio) => radio.checked);

function goOn(hit, row) {
  const rows = hit.whole.parts.flatMap(groups).sort(([one], [other]) => inDocument(one, other));
  const place = rows.findIndex(([radio]) => radio === row[0]);
  const next = [...rows.slice(place + 1), ...rows.slice(0, place)].find(unanswered);
  const goal = next?.[0] ?? remarks.firstEmpty(hit) ?? hit.form.querySelector(".primary");
  goal.focus({ preventScroll: true });
  (next ? goal.closest("[data-item]") : goal).scrollIntoView({ block: "nearest" });
}
