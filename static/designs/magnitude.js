// Magnitude: beside each value how many times the reference it is, and what is wrong with what cannot be one.

import { run } from "../hit.js";
import * as keys from "../hit/keys.js";
import { all } from "../hit/page.js";
import { missing, native } from "../hit/native.js";
import { say } from "../hit/sending.js";
import { words } from "../hit/words.js";

const GROUPED = /^[+-]?[1-9][0-9]{0,2},[0-9]{3}$/;
const NUMBER = /^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$/;
const BELOW_ZERO = /^-([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$/;
const NEIGHBOURS = { ArrowUp: -1, ArrowDown: 1 };
const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

const fields = (hit) => all(hit.fieldset, ".judged input:enabled");
const timesOf = (field) => field.closest("li").querySelector(".times");

// The same digits and signs on every keyboard, as `typed_decimal` in app/designs/number_parsing.py reads them.
const plainSigns = (text) => text.trim()
  .replace(/[\u0660-\u0669\u06F0-\u06F9\uFF10-\uFF19]/g, (digit) => digit.charCodeAt(0) & 15)
  .replace(/[٫．，＋－]/g, (sign) => "..,+-"["٫．，＋－".indexOf(sign)]);
const withPoint = (field) => plainSigns(field.value).replace(",", ".");

/** Return what is wrong with a field, in short and as a sentence; null where nothing is, or nothing was entered. */
function problem(field) {
  const text = field.value.trim();
  const number = withPoint(field);
  const [value, least, most] = [Number(number), Number(field.dataset.least), Number(field.dataset.most)];
  if (!text) return null;
  if (GROUPED.test(plainSigns(text))) {
    const [thousands, decimals] = [plainSigns(text).replace(",", ""), number];
    return [words("which number?"), words("“%(text)s” can be read in two ways. Write %(thousands)s or %(decimals)s.", { text, thousands, decimals })];
  }
  if (BELOW_ZERO.test(number) || (NUMBER.test(number) && value === 0)) {
    return [words("not above 0"), words("%(text)s is not above 0. An item far below the reference gets a small number, for example 1 or 0.5.", { text })];
  }
  if (!NUMBER.test(number)) return [words("not a number"), words("“%(text)s” is not a number. Write it in digits, with a point: for example 150 or 0.5.", { text })];
  if (value > most) return [words("too large"), words("%(text)s is more than a million times the reference. Is a digit too many?", { text })];
  if (value < least) return [words("too small"), words("%(text)s is less than a millionth of the reference. Is a digit too many?", { text })];
  return null;
}

// ---- What is seen ----

function check(field) {
  field.setCustomValidity(problem(field)?.[1] ?? "");
}

// While somebody types, 0 may become 0.5: so what is wrong is told once they leave the field.
function drawField(field, left) {
  const wrong = problem(field);
  const told = wrong && left;
  timesOf(field).textContent = told ? wrong[0] : wrong || !field.value.trim() ? "" : times(field);
  timesOf(field).classList.toggle("wrong", Boolean(told));
  field.setAttribute("aria-invalid", String(Boolean(told)));
}

const times = (field) => `× ${digits.format(Number(withPoint(field)) / Number(field.dataset.reference))}`;

function drawn(hit) {
  for (const field of fields(hit)) drawField(field, field !== document.activeElement);
}

// ---- What is done ----

function read(fieldset, name) {
  const hit = plain.read(fieldset, name);
  const { ready } = hit;
  fieldset.addEventListener("input", ({ target }) => { if (target.matches("input")) check(target); }, { capture: true });
  return Object.assign(hit, { ready: () => ready() || explain(hit) });
}

function begin(hit) {
  fields(hit).forEach(check);
  hit.fieldset.addEventListener("focusout", ({ target }) => { if (fields(hit).includes(target)) drawField(target, true); });
}

function explain(hit) {
  const [first] = missing(hit);
  const wrong = problem(first);
  drawField(first, true);
  if (wrong) say(hit, wrong[1], "error");
  return false;
}

function press(hit, event) {
  if (keys.isQuestionMark(event)) event.preventDefault();       // it is part of no number
  if (keys.press(hit, event) || keys.withModifier(event) || !(event.key in NEIGHBOURS)) return;
  const among = fields(hit);
  const next = among.includes(event.target) && among[among.indexOf(event.target) + NEIGHBOURS[event.key]];
  if (!next) return;
  event.preventDefault();
  next.select();
}

const plain = native({ begin, press, drawn });
run({ ...plain, read });
