// Pointers on sliders: press or drag on a row's rail, or drag a mark on the strip.

import { clamp, draw, place, rowAround, rowOf, scored } from "./rows.js";

const DRAG_STARTS_PX = 5;      // less is a tap
const SNAP_PX = 4;             // on the strip, this close to another mark means the same score

export function begin(hit) {
  const handlers = [["pointermove", move], ["pointerup", release], ["pointercancel", cancel], ["lostpointercapture", cancel]]
    .map(([name, handler]) => [name, (event) => handler(hit, event)]);
  hit.fieldset.addEventListener("pointerdown", (event) => press(hit, event, handlers));
}

function press(hit, event, handlers) {
  const surface = event.target.closest(".track, .mark, .chip");
  if (!surface || event.button !== 0 || hit.sending || hit.gesture) return;
  const onStrip = !surface.matches(".track");
  const row = onStrip ? rowOf(hit, surface.dataset.item) : rowAround(hit, surface);
  if (!row) return;                                            // of another criterion
  const rail = onStrip ? hit.fieldset.querySelector(".strip > .rail") : row.rail;
  const kind = onStrip ? "strip" : event.pointerType || "mouse";
  const gesture = { row, rail, kind, onStrip, handlers, id: event.pointerId, x: event.clientX, y: event.clientY, moved: false, before: snapshot(row) };
  gesture.grip = grip(gesture);
  hit.gesture = gesture;
  if (event.pointerType !== "touch") event.preventDefault();   // no text selection; a finger must stay free to scroll
  row.input.focus({ preventScroll: true });
  hit.fieldset.setPointerCapture(event.pointerId);
  for (const [name, handler] of handlers) hit.fieldset.addEventListener(name, handler);
  if (!onStrip && event.pointerType !== "touch") slide(hit, event);
}

const snapshot = ({ score, firstTouchMs, changes, kind }) => ({ score, firstTouchMs, changes, kind });

// A knob taken beside its centre does not jump: the distance is kept while it is dragged.
function grip({ row, rail, x, onStrip }) {
  if (row.score === null) return 0;
  const distance = x - positionOf(row.score, rail);
  return onStrip || Math.abs(distance) <= row.thumb.offsetWidth / 2 ? distance : 0;
}

function positionOf(score, rail) {
  const { left, width } = rail.getBoundingClientRect();
  return left + width * score / 100;
}

function scoreAt(hit, x, { rail, row, onStrip }) {
  const { left, width } = rail.getBoundingClientRect();
  const near = onStrip && scored(hit).find((other) => other !== row && Math.abs(positionOf(other.score, rail) - x) <= SNAP_PX);
  return near ? near.score : clamp(Math.round(100 * (x - left) / width));
}

function slide(hit, event) {
  const { row, kind, grip: offset } = hit.gesture;
  const score = scoreAt(hit, event.clientX - offset, hit.gesture);
  if (score !== row.score) place(hit, row, score, kind, { counts: false });
}

function move(hit, event) {
  const { gesture } = hit;
  if (event.pointerId !== gesture?.id) return;
  if (scrolls(event, gesture)) return cancel(hit, event);
  gesture.moved ||= Math.abs(event.clientX - gesture.x) >= DRAG_STARTS_PX;
  if (gesture.moved) {
    mark(gesture, true);
    slide(hit, event);
  }
}

// A finger that goes up or down a rail means to scroll, whether or not the browser says so with pointercancel.
function scrolls(event, { x, y, moved, onStrip }) {
  const [across, along] = [Math.abs(event.clientY - y), Math.abs(event.clientX - x)];
  return event.pointerType === "touch" && !onStrip && !moved && across >= DRAG_STARTS_PX && across > along;
}

function release(hit, event) {
  const { gesture } = hit;
  if (event.pointerId !== gesture?.id) return;
  if (!gesture.moved && !gesture.onStrip) slide(hit, event);        // a tap places the item where it fell
  if (gesture.onStrip && !gesture.moved) gesture.row.element.scrollIntoView({ block: "nearest" });
  end(hit);
  if (gesture.row.score !== gesture.before.score) place(hit, gesture.row, gesture.row.score, gesture.kind);
}

// The browser took the gesture for scrolling, or Escape was pressed: as if nothing had happened.
export function cancel(hit, event) {
  const { gesture } = hit;
  if (!gesture || ("pointerId" in event && event.pointerId !== gesture.id)) return;
  end(hit);
  Object.assign(gesture.row, gesture.before);
  draw(hit);
}

function end(hit) {
  const { gesture } = hit;
  mark(gesture, false);
  hit.gesture = null;
  for (const [name, handler] of gesture.handlers) hit.fieldset.removeEventListener(name, handler);
}

function mark({ row, onStrip }, active) {
  for (const element of [row.mark, row.chip]) element?.classList.toggle("active", active && onStrip);
}
