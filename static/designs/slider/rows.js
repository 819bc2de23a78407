// A HIT of sliders: its rows, their scores, and all that is seen and heard of them.

import { all, announce, calm, inDocument, ring } from "../../hit/page.js";
import { tell } from "../../hit/parts.js";
import { keep, say } from "../../hit/sending.js";
import { COUNTS, ORDINALS, PLACES } from "../../hit/numbers.js";
import * as unjudged from "../../hit/unjudged.js";
import { words } from "../../hit/words.js";

const CLEARED = "clear";
const FIRST_SCORE = 50;   // where a press of an arrow key or a step button places an item that had no score

export const clamp = (value) => Math.min(100, Math.max(0, value));

// ---- From the plain form to rows we know ----

// strip: what shows all rows together, `begin(hit)` and `draw(hit)`. Without one there are no marks and chips; a row that
// stands for itself has no rank and no list of ties.
export function read(fieldset, name, strip) {
  const hit = { fieldset, name, strip, form: fieldset.closest("form"), shownAt: performance.now(), order: "" };
  hit.rows = all(fieldset, `.row:has([name^="${name}score-"])`).map((element) => readRow(fieldset, element));
  return Object.assign(hit, {
    entries: () => entries(hit),
    restore: (kept) => restore(hit, kept),
    fields: () => fields(hit),
    missing: () => missing(hit).map(({ input }) => input),
    ready: () => ready(hit),
    draw: () => draw(hit),
  });
}

function readRow(fieldset, element) {
  const input = element.querySelector("input");
  const row = {
    element, input,
    item: element.dataset.item,
    letter: element.dataset.letter ?? words("this item"),
    name: element.closest("li").querySelector(".text").textContent.trim(),
    score: input.value === "" ? null : clamp(Math.round(Number(input.value))),
    firstTouchMs: element.dataset.firstTouchMs ?? "",
    changes: Number(element.dataset.changes ?? 0),
    kind: element.dataset.inputKind ?? "",
    thumb: element.querySelector(".thumb"),
    number: element.querySelector(".number"),
    rank: element.querySelector(".rank"),
    same: element.querySelector(".same"),
    rail: element.querySelector(".rail"),
    mark: fieldset.querySelector(`.mark[data-item="${element.dataset.item}"]`),
    chip: fieldset.querySelector(`.chip[data-item="${element.dataset.item}"]`),
  };
  input.type = "range";
  return row;
}

export function begin(hit) {
  hit.strip.begin(hit);
  hit.fieldset.addEventListener("input", (event) => takeNativeInput(hit, event));
  hit.fieldset.addEventListener("change", (event) => chooseTie(hit, event));
  hit.fieldset.addEventListener("click", (event) => click(hit, event));
  draw(hit);
}

// ---- Scores: the one place where a score is set; null is none ----

export function place(hit, row, score, kind, { counts = true, keeps = counts } = {}) {
  if (hit.sending || row.input.disabled) return draw(hit);
  row.score = score;
  row.kind = kind;
  if (row.firstTouchMs === "") row.firstTouchMs = Math.round(performance.now() - hit.shownAt);
  if (counts) row.changes += 1;
  changed(hit, keeps);
}

function changed(hit, keeps = true) {
  hit.changed = true;
  hit.equalAsked = false;
  hit.problem = false;
  draw(hit);
  if (keeps) keep(hit);
}

export const rowOf = (hit, item) => hit.rows.find((row) => row.item === item);
export const rowAround = (hit, part) => hit.rows.find(({ element }) => element.contains(part));
export const scored = (hit) => hit.rows.filter((row) => row.score !== null);
export const stepped = (row, by) => (row.score === null ? FIRST_SCORE : clamp(row.score + by));

const rowsAsShown = (hit) => [...hit.rows].sort((one, other) => inDocument(one.element, other.element));
const missing = (hit) => rowsAsShown(hit).filter((row) => row.score === null && !row.input.disabled);
// The row with the focus; where there is none, the one that is to be scored next.
export const rowInHand = (hit) => rowAround(hit, document.activeElement) ?? missing(hit)[0];
const inCompany = (hit) => hit.rows.length > 1;
const isTied = (hit, row) => scored(hit).some((other) => other !== row && other.score === row.score);
const rankOf = (hit, row) => 1 + scored(hit).filter((other) => other.score > row.score).length;
const byScore = (hit) => [...hit.rows].sort((a, b) => (b.score ?? -1) - (a.score ?? -1));

function entries(hit) {
  return Object.fromEntries(scored(hit).map((row) => [hit.name + row.item, {
    score: row.score, first_touch_ms: Number(row.firstTouchMs), changes: row.changes, input_kind: row.kind,
  }]));
}

function restore(hit, kept) {
  for (const row of hit.rows) {
    const entry = kept[hit.name + row.item];
    if (entry) Object.assign(row, { score: entry.score, firstTouchMs: entry.first_touch_ms, changes: entry.changes, kind: entry.input_kind });
  }
}

const fields = (hit) => hit.rows.flatMap((row) => [
  [`${hit.name}score-${row.item}`, row.score ?? ""],
  [`${hit.name}first_touch_ms-${row.item}`, row.firstTouchMs],
  [`${hit.name}changes-${row.item}`, row.changes],
  [`${hit.name}input_kind-${row.item}`, row.kind],
]);

// ---- Drawing: everything that is seen follows from the scores ----

export function draw(hit) {
  unjudged.draw(hit);
  for (const row of hit.rows) if (row.input.disabled) row.score = null;
  for (const row of hit.rows) drawRow(hit, row);
  hit.strip.draw(hit);
  drawHint(hit);
  drawStatus(hit);
  announceOrder(hit);
  const sort = hit.fieldset.querySelector(".sort");
  if (sort) sort.disabled = scored(hit).length < 2;
}

function drawRow(hit, row) {
  const placed = row.score !== null;
  row.element.toggleAttribute("data-scored", placed);
  row.chip?.toggleAttribute("data-scored", placed || row.input.disabled);
  row.input.value = placed ? row.score : FIRST_SCORE;
  row.input.setAttribute("aria-valuetext", spoken(hit, row));
  row.thumb.style.setProperty("--at", row.score ?? FIRST_SCORE);
  if (row.number) row.number.textContent = placed ? row.score : "";
  if (row.rank) row.rank.textContent = placed && inCompany(hit) ? (isTied(hit, row) ? "=" : "") + PLACES[rankOf(hit, row)] : "";
  if (row.same) offerTies(hit, row);
}

function spoken(hit, row) {
  const { score } = row;
  if (score === null) return words("not scored yet");
  if (!inCompany(hit)) return words("%(score)s of 100", { score });
  const values = { score, place: ORDINALS[rankOf(hit, row)], count: COUNTS[scored(hit).length] };
  if (missing(hit).length) {
    return isTied(hit, row)
      ? words("%(score)s of 100, tied %(place)s of %(count)s so far", values)
      : words("%(score)s of 100, %(place)s of %(count)s so far", values);
  }
  return isTied(hit, row)
    ? words("%(score)s of 100, tied %(place)s of %(count)s", values)
    : words("%(score)s of 100, %(place)s of %(count)s", values);
}

// What to do is said once, in the row that is next.
function drawHint(hit) {
  for (const row of hit.rows) row.element.toggleAttribute("data-next", row === missing(hit)[0]);
  const [first] = all(hit.form ?? hit.fieldset, ".row[data-next]");
  for (const element of all(hit.form ?? hit.fieldset, ".row:is([data-next], [data-hint])")) element.toggleAttribute("data-hint", element === first);
}

function offerTies(hit, row) {
  const several = scored(hit).length > 1;
  const options = scored(hit).filter((other) => other !== row).map((other) => new Option(words("same as %(letter)s", other), other.item));
  if (row.score !== null) options.push(new Option(words("no score"), CLEARED));
  // One score alone can only be taken back, where there is no room for a button.
  row.same.disabled = !several && row.score === null;
  row.same.options[0].textContent = several ? words("same as") : "×";
  row.same.toggleAttribute("data-clears-only", !several);
  row.same.replaceChildren(row.same.options[0], ...options);
  row.same.selectedIndex = 0;
}

function drawStatus(hit) {
  const left = missing(hit).length;
  tell(hit, left ? words("%(left)s left", { left }) : "", { asks: hit.equalAsked ? words("Submit all equal") : "" });
}

function announceOrder(hit) {
  const rows = byScore(hit).filter((row) => row.score !== null);
  const order = rows.map((row, index) => {
    const letter = row.name.slice(0, 30);
    return index && row.score === rows[index - 1].score ? words("same as %(letter)s", { letter }) : letter;
  }).join(", ");
  if (hit.changed && order !== hit.order && rows.length > 1) announce(words("Order, highest first: %(order)s.", { order }));
  hit.order = order;
}

// ---- Submitting: what is missing is said, and five equal scores are asked about once ----

function ready(hit) {
  const left = missing(hit);
  if (left.length) askFor(hit, left);
  else if (allEqual(hit) && !hit.equalAsked) askWhetherEqual(hit);
  else return true;
  return false;
}

const allEqual = (hit) => scored(hit).length > 1 && scored(hit).every(({ score }, _, [first]) => score === first.score);

function askFor(hit, left) {
  goTo(left[0]);
  ring(left[0].element);
  const message = words("Not scored yet: %(letters)s.", { letters: left.map(({ letter }) => letter).join(", ") });
  say(hit, message, "warning");
  announce(message);
}

function askWhetherEqual(hit) {
  const question = words("All %(count)s have the same score. If you mean it, submit again.", { count: COUNTS[scored(hit).length] });
  hit.equalAsked = true;
  drawStatus(hit);
  say(hit, question);
  announce(question);
}

export function goTo(row) {
  row.input.focus({ preventScroll: true });
  row.element.scrollIntoView({ block: "nearest" });
}

// ---- Buttons, and what assistive technology and scripts do without a key or a pointer ----

function takeNativeInput(hit, event) {
  const row = hit.rows.find(({ input }) => input === event.target);
  if (row) place(hit, row, Number(row.input.value), "keyboard");
}

function chooseTie(hit, event) {
  const { target } = event;
  const row = rowAround(hit, target);
  if (!row || !target.matches(".same") || !target.value) return;
  place(hit, row, target.value === CLEARED ? null : rowOf(hit, target.value).score, "button");
}

function click(hit, event) {
  const button = event.target.closest("button");
  const row = button && rowAround(hit, button);
  if (row && button.matches("[data-step], .clear")) {
    const score = button.matches(".clear") ? null : stepped(row, Number(button.dataset.step));
    if (score !== row.score) place(hit, row, score, "button");
    if (score === null) row.input.focus({ preventScroll: true });     // the button has gone
  }
  if (button?.matches(".sort")) sortRows(hit);
}

function sortRows(hit) {
  const focused = document.activeElement;
  const tops = new Map(hit.rows.map((row) => [row, row.element.offsetTop]));
  hit.fieldset.querySelector(".rows").append(...byScore(hit).map((row) => row.element));
  focused?.focus({ preventScroll: true });
  announce(words("Rows sorted: %(names)s.", { names: rowsAsShown(hit).map((row) => row.name.slice(0, 30)).join(", ") }));
  if (calm()) return;
  for (const [row, top] of tops) {
    const frames = [{ transform: `translateY(${top - row.element.offsetTop}px)` }, { transform: "none" }];
    row.element.animate(frames, { duration: 150, easing: "ease-out" });
  }
}
