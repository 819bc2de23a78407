// Several labels: check boxes in rows, one row for each item. A digit ticks a label of the item in hand; "none of these"
// and the labels exclude each other. With one question the boxes are radio buttons for yes and no.

import { run } from "../hit.js";
import * as keys from "../hit/keys.js";
import { native } from "../hit/native.js";
import { all } from "../hit/page.js";

const rowsOf = (hit) => all(hit.fieldset, ".row[data-item]");
const boxesOf = (row) => all(row, ".option input:enabled");
const isTicked = (row) => boxesOf(row).some(({ checked }) => checked);
const isNone = (box) => "none" in box.dataset;

// Before the form hears of the change, so that it sees boxes that go together.
function begin(hit) {
  hit.fieldset.addEventListener("input", ({ target }) => { if (target.matches(".option [type=checkbox]")) exclude(target); }, { capture: true });
}

function exclude(box) {
  if (!box.checked) return;
  for (const other of boxesOf(box.closest("[data-item]"))) if (isNone(other) !== isNone(box)) other.checked = false;
}

// An item lacks an answer until a label or "none of these" is ticked; its first box says so.
function check(hit) {
  for (const row of rowsOf(hit)) {
    const [first] = all(row, ".option [type=checkbox]");
    first?.setCustomValidity(isTicked(row) ? "" : "-");
  }
}

function press(hit, event) {
  const sends = event.key === "Enter" && keys.withModifier(event);
  if (keys.taken(event) && !sends) return;
  if (!keys.press(hit, event) && !keys.withModifier(event)) pressInRow(hit, event);
}

function pressInRow(hit, event) {
  const row = rowInHand(hit), key = keys.latinKey(event);
  const box = row && boxesOf(row).find(({ dataset }) => dataset.key === key);
  if (box) tick(hit, event, box);
  else if (key === "n" || key === "p") goTo(hit, event, row, key === "n" ? 1 : -1);
}

function tick(hit, event, box) {
  event.preventDefault();
  if (event.repeat || hit.sending) return;
  hit.means = "keyboard";
  show(box);
  box.click();
}

function goTo(hit, event, row, step) {
  const rows = rowsOf(hit).filter((one) => boxesOf(one).length);
  const next = rows[rows.indexOf(row) + step];
  if (!next) return;
  event.preventDefault();
  show(boxesOf(next)[0]);
  next.scrollIntoView({ block: "nearest" });
}

function show(box) {
  box.focus({ preventScroll: true });
  box.scrollIntoView({ block: "nearest" });
}

// The row with the focus, else the first without an answer, else the first.
function rowInHand(hit) {
  const rows = rowsOf(hit).filter((row) => boxesOf(row).length);
  const item = document.activeElement?.closest("[data-item]");
  return rows.find((row) => row === item) ?? rows.find((row) => !isTicked(row)) ?? rows[0];
}

run(native({ begin, press, check }));
