// Presses that were meant for the page before, such as the second half of a double click or a key that is held, would answer
// a task unread. So what can answer is ignored until a task has been seen for a moment.

import { stored } from "./page.js";

const SEEN_FOR_MS = 450;       // from when a task is painted
const SENT = "easel:sent";     // when this tab left a page by one of its forms
const NAVIGATION_MS = 10_000;  // how long the next page may take to come

const CONTROLS = "button, input, select, textarea, label, a, summary, .track, .mark, .chip, .letter";
const HARMLESS = /^(Tab|Shift|Control|Alt|AltGraph|Meta|CapsLock|Escape|F\d+|Page(Up|Down)|Home|End)$/;

let closed = false;
let tasks = 0;
let said = true;               // whether this page has told that it ignored something
let press = null;              // "early" or "good": a pointer that went down and has not clicked yet
let tell = () => {};
const begun = new Set();       // keys that went down on this task

/** Ignore presses from now on until what is painted next has been seen for a moment. */
export function close() {
  closed = true;
  said = false;
  begun.clear();
  if (press) press = "early";
  const task = ++tasks;
  const open = () => { if (task === tasks) closed = false; };
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(open, SEEN_FOR_MS)));
}

/** Listen on this page. `ignored()` is called when it has ignored a press, once for each task. */
export function begin(ignored) {
  tell = ignored;
  addEventListener("keydown", key, { capture: true });
  for (const type of ["pointerdown", "mousedown", "click", "dblclick"]) addEventListener(type, point, { capture: true });
  addEventListener("submit", sendOnce);
  addEventListener("pageshow", () => { for (const form of document.forms) delete form.dataset.sent; });
  const at = Number(stored("sessionStorage", (storage) => storage.getItem(SENT)));
  stored("sessionStorage", (storage) => storage.removeItem(SENT));
  if (at && Date.now() - at < NAVIGATION_MS) close();
}

function key(event) {
  const name = event.code || event.key;
  const { ctrlKey, metaKey, altKey } = event;
  const harmless = HARMLESS.test(event.key) || ((ctrlKey || metaKey || altKey) && event.key !== "Enter");
  const held = event.repeat && !begun.has(name);
  if ((closed || held) && !harmless) return ignore(event);
  if (!event.repeat) begun.add(name);
  press = null;
}

// A choice that submits nothing is taken at once.
const isChoice = (field, { detail }) => /radio|checkbox/.test(field?.type) && detail < 2 && !field.form?.querySelector("[data-at-once]");

// What is pressed too early does nothing when it is let go either.
function point(event) {
  let control = event.target.closest?.(CONTROLS);
  if (isChoice(control?.control ?? control, event)) control = null;
  if (event.type === "pointerdown") press = control && closed ? "early" : "good";
  if (control && (closed || press === "early")) ignore(event);
  if (event.type === "click") press = null;
}

function ignore(event) {
  event.preventDefault();
  event.stopImmediatePropagation();
  if (!said) tell();
  said = true;
}

// A form without a script of its own is sent once, however often its button is pressed.
function sendOnce(event) {
  if (event.defaultPrevented) return;
  const now = Date.now();
  if (now - event.target.dataset.sent < NAVIGATION_MS) return event.preventDefault();
  event.target.dataset.sent = now;
  stored("sessionStorage", (storage) => storage.setItem(SENT, String(now)));
}
