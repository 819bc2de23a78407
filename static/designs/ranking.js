// Ranking: items are pressed in their order, or dragged into it, and moved by buttons and keys. What has no place yet is
// beside the order, so that an order nobody made is never an answer. The places are the numbers of the plain form.

import { run } from "../hit.js";
import { rowOfKey } from "../hit/letters.js";
import { changed, native } from "../hit/native.js";
import { PLACES } from "../hit/numbers.js";
import { all, announce, calm } from "../hit/page.js";
import { words } from "../hit/words.js";
import * as drag from "./ranking/drag.js";
import { indexOf, inserted, ordered, places, stepped, toggled, without } from "./ranking/order.js";

const STEPS = { ArrowUp: -1, ArrowDown: 1 };
const MOVE_MS = 150;
const AFTER_DROP_MS = 50;      // a click that soon after a drop is the end of it

// ---- Rows, and the order that their numbers say ----

const rows = (hit) => all(hit.fieldset, ".row");
const rowOf = (hit, item) => rows(hit).find((row) => row.dataset.item === item);
const judged = (hit) => rows(hit).filter((row) => !inputOf(row).disabled);
const inputOf = (row) => row.querySelector("input");
const badgeOf = (row) => row.querySelector(".badge");
const nameOf = (row) => row.querySelector(".text").textContent.trim().slice(0, 30);
const isPlaced = (hit, item) => indexOf(hit.order, item) >= 0;
const tiesAllowed = (hit) => hit.fieldset.querySelector(".ranking").dataset.ties !== "";

function begin(hit) {
  const entered = rows(hit).filter((row) => inputOf(row).value);
  hit.order = ordered(entered.map((row) => [row.dataset.item, Number(inputOf(row).value)]));
  write(hit);
  hit.fieldset.addEventListener("click", (event) => click(hit, event));
  hit.fieldset.addEventListener("keydown", (event) => key(hit, event));
  drag.begin(hit, (item, at) => drop(hit, item, at));
}

// The one place where the order is set; `item` is what was moved, and null is no order at all.
function set(hit, item, order, means = hit.means) {
  const row = rowOf(hit, item);
  if (hit.sending || !order || inputOf(row).disabled) return;
  hit.order = order;
  hit.means = means;
  write(hit);
  changed(hit, inputOf(row));
  badgeOf(row).focus({ preventScroll: true });
  if (hit.means === "keyboard") row.scrollIntoView({ block: "nearest" });     // who presses has the next one before them
  const left = judged(hit).length - order.length;
  announce(`${spoken(hit, row)}${left ? `, ${words("%(left)s left", { left })}` : ""}.`);
}

function write(hit) {
  const found = places(hit.order);
  for (const row of rows(hit)) inputOf(row).value = found[indexOf(hit.order, row.dataset.item)] ?? "";
}

// ---- What buttons, presses and keys do ----

const next = (hit, item) => set(hit, item, inserted(hit.order, item, hit.order.length));
const out = (hit, item) => set(hit, item, without(hit.order, item));
const tie = (hit, item) => { if (tiesAllowed(hit) && indexOf(hit.order, item) > 0) set(hit, item, toggled(hit.order, item)); };

function step(hit, item, by) {
  if (isPlaced(hit, item)) set(hit, item, stepped(hit.order, item, by));
  else next(hit, item);
}

// `at` is a place of the order without it; null is nowhere.
function drop(hit, item, at) {
  const rest = without(hit.order, item);
  if (at !== null) set(hit, item, inserted(rest, item, at));
  else if (isPlaced(hit, item)) set(hit, item, rest);
}

function toEnd(hit, item, last) {
  const rest = without(hit.order, item);
  set(hit, item, last ? [...rest, { item, tied: false }] : [{ item, tied: false }, ...rest]);
}

// The second half of a double click would fall on whatever has moved up to where the item was.
function click(hit, event) {
  const row = event.target.closest(".ranking .row");
  if (!row || event.detail > 1 || event.timeStamp - hit.droppedAt < AFTER_DROP_MS) return;
  const button = event.target.closest("button");
  const { item } = row.dataset;
  if (button?.matches("[data-move]")) step(hit, item, Number(button.dataset.move));
  else if (button?.matches(".tie")) tie(hit, item);
  else if (button?.matches(".out")) out(hit, item);
  else if (!event.target.closest(".item, input")) pressed(hit, row);
}

function pressed(hit, row) {
  if (isPlaced(hit, row.dataset.item)) announce(`${spoken(hit, row)}. ${words("Move it with the arrow keys.")}`);
  else next(hit, row.dataset.item);
}

function key(hit, event) {
  const { item } = event.target.closest(".ranking .row")?.dataset ?? {};
  if (!item || event.target.matches("audio, video") || event.ctrlKey || event.metaKey || event.altKey) return;
  const action = {
    ArrowUp: step, ArrowDown: step, "=": tie, Delete: out, Backspace: out,
    Home: () => toEnd(hit, item, false), End: () => toEnd(hit, item, true),
  }[event.key];
  if (!action) return;
  event.preventDefault();
  action(hit, item, STEPS[event.key]);
}

function press(hit, event) {
  if (event.key === "Escape") drag.cancel(hit, event);
  const row = rowOfKey(hit, event);
  if (!row || event.shiftKey) return;
  if (isPlaced(hit, row.dataset.item)) badgeOf(row).focus();
  else set(hit, row.dataset.item, inserted(hit.order, row.dataset.item, hit.order.length), "keyboard");
}

// ---- Drawing: all that is seen follows from the order ----

function drawn(hit) {
  const placeless = hit.order.filter(({ item }) => inputOf(rowOf(hit, item)).disabled);
  if (placeless.length) {                        // what cannot be judged has no place
    hit.order = placeless.reduce((order, { item }) => without(order, item), hit.order);
    write(hit);
  }
  const before = new Map(rows(hit).map((row) => [row, row.getBoundingClientRect()]));
  const sorted = hit.order.map(({ item }) => rowOf(hit, item));
  const rest = hit.items.map((item) => rowOf(hit, item)).filter((row) => !sorted.includes(row));
  arrange(hit.fieldset.querySelector(".order"), sorted);
  arrange(hit.fieldset.querySelector(".rest"), rest);
  for (const row of [...sorted, ...rest]) drawRow(hit, row);
  all(hit.fieldset, ".slot").forEach((slot, at) => { slot.hidden = at < sorted.length || at >= judged(hit).length; });
  hit.fieldset.querySelector(".unranked").hidden = !rest.length;
  if (hit.changed) slide(before);
}

// A row that stays where it is keeps its focus.
function arrange(list, wanted) {
  wanted.forEach((row, at) => { if (list.children[at] !== row) list.insertBefore(row, list.children[at] ?? null); });
}

function drawRow(hit, row) {
  const at = indexOf(hit.order, row.dataset.item);
  const placed = at >= 0;
  const badge = badgeOf(row);
  row.toggleAttribute("data-placed", placed);
  row.toggleAttribute("data-tied", placed && hit.order[at].tied);
  badge.textContent = placed ? `${isTied(hit, at) ? "=" : ""}${places(hit.order)[at]}` : `${hit.order.length + 1}`;
  badge.ariaLabel = placed ? spoken(hit, row) : words("Put %(name)s %(place)s", { name: nameOf(row), place: PLACES[hit.order.length + 1] });
  drawMoves(hit, row, at);
}

function drawMoves(hit, row, at) {
  row.querySelector(".up").disabled = !stepped(hit.order, row.dataset.item, -1);
  row.querySelector(".down").disabled = !stepped(hit.order, row.dataset.item, 1);
  const button = row.querySelector(".tie");
  if (!button) return;
  button.disabled = at < 1;
  button.ariaPressed = String(at > 0 && hit.order[at].tied);
}

const isTied = ({ order }, at) => order[at].tied || Boolean(order[at + 1]?.tied);

function spoken(hit, row) {
  const at = indexOf(hit.order, row.dataset.item);
  const name = nameOf(row);
  if (at < 0) return words("%(name)s, no place", { name });
  const values = { name, place: PLACES[places(hit.order)[at]], count: hit.order.length };
  return isTied(hit, at)
    ? words("%(name)s, tied %(place)s of %(count)s", values)
    : words("%(name)s, %(place)s of %(count)s", values);
}

// From where each row was to where it is, so that the eye can follow.
function slide(before) {
  if (calm()) return;
  for (const [row, { left, top }] of before) {
    const now = row.getBoundingClientRect();
    const frames = [{ transform: `translate(${left - now.left}px, ${top - now.top}px)` }, { transform: "none" }];
    if (left !== now.left || top !== now.top) row.animate(frames, { duration: MOVE_MS, easing: "ease-out" });
  }
}

// ---- As a design ----

const plain = native({ begin, press, drawn });

// What is missing is a number that is not shown: what can be pressed is the badge beside it.
function read(fieldset, name) {
  const hit = Object.assign(plain.read(fieldset, name), { order: [] });
  const { ready } = hit;
  hit.ready = () => {
    const complete = ready();
    if (!complete) badgeOf(hit.fieldset.querySelector(".rest .row:not(:has([data-unjudged]))"))?.focus();
    return complete;
  };
  return hit;
}

run({ ...plain, read });
