// Keys on sliders. Digits score and letters go to rows, so no key means two things.

import * as keys from "../../hit/keys.js";
import { cancel } from "./pointers.js";
import { goTo, place, rowInHand, stepped } from "./rows.js";

const PAUSE_MS = 1500;         // after it a digit begins another number
const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };
const ENDS = { Home: 0, End: 100 };
const digitOf = (event) => /^[0-9]$/.exec(keys.latinKey(event))?.[0];

export function begin(hit) {
  hit.fieldset.addEventListener("keydown", (event) => pressKey(hit, event));
}

// ---- Keys for the slider that has the focus ----

function pressKey(hit, event) {
  const row = hit.rows.find(({ input }) => input === event.target);
  if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
  const digit = digitOf(event);
  if (digit) return type(hit, row, digit);
  const text = event.key === "Backspace" && typing(hit, row) ? hit.typed.text.slice(0, -1) : "";
  hit.typed = null;
  if (text) return show(hit, row, text, { counts: false });
  const score = scoreByKey(hit, row, event);
  if (score === undefined) return;
  event.preventDefault();
  if (score !== row.score) place(hit, row, score, "keyboard");
}

function typing(hit, row) {
  const { typed } = hit;
  return typed?.row === row && Number(typed.text) === row.score && performance.now() - typed.at < PAUSE_MS;
}

// 7, then 2, is 72; what would be more than 100 begins another number.
function type(hit, row, digit) {
  const longer = (typing(hit, row) ? hit.typed.text : "") + digit;
  const goesOn = longer.length > 1 && longer.length <= 3 && Number(longer) <= 100;
  show(hit, row, goesOn ? longer : digit, { counts: !goesOn });
}

function show(hit, row, text, { counts }) {
  hit.typed = { row, text, at: performance.now() };
  place(hit, row, Number(text), "keyboard", { counts, keeps: true });
}

function scoreByKey(hit, row, event) {
  const { key, shiftKey } = event;
  if (key === "Delete" || key === "Backspace") return null;
  if (key in ENDS) return ENDS[key];
  if (key in STEPS) return stepped(row, STEPS[key] * (shiftKey && key.startsWith("Arrow") ? 10 : 1));
  const other = shiftKey && rowOfLetter(hit, event);
  return other && other !== row && other.score !== null ? other.score : undefined;
}

const rowOfLetter = (hit, event) => hit.rows.find(({ letter }) => letter === keys.latinKey(event));

// ---- Keys that work wherever the focus is ----

export function pressAnywhere(hit, event) {
  if (keys.taken(event)) return;
  if (event.key === "Escape") cancel(hit, event);
  if (keys.press(hit, event) || keys.withModifier(event)) return;
  const digit = digitOf(event);
  if (digit) typeAnywhere(hit, event, digit);
  else if (!event.shiftKey) visit(hit, rowOfLetter(hit, event));
}

function typeAnywhere(hit, event, digit) {
  const row = rowInHand(hit);
  if (!row || event.target === row.input) return;     // a slider with the focus has taken the digit itself
  goTo(row);
  type(hit, row, digit);
}

function visit(hit, row) {
  if (!row) return;
  hit.typed = null;
  goTo(row);
}
