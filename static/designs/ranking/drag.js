// Dragging items into the order: by mouse a row beside its words, which can be marked, by finger its badge, so that the page
// still scrolls.

const DRAG_STARTS_PX = 5;      // less is a press
const EDGE_PX = 48;            // this near to an edge of the window the page scrolls
const SCROLL_PX = 12;
const PRESSED = ".item, button:not(.badge), a, input, summary";

// drop(item, at) puts it at a place of the order without it, or nowhere: null.
export function begin(hit, drop) {
  const handlers = Object.entries({ pointermove: move, pointerup: release, pointercancel: cancel, lostpointercapture: cancel })
    .map(([name, handler]) => [name, (event) => handler(hit, event)]);
  hit.drop = drop;
  hit.fieldset.addEventListener("pointerdown", (event) => press(hit, event, handlers));
}

function press(hit, event, handlers) {
  const row = event.target.closest(".ranking .row");
  const surface = event.pointerType === "touch" ? event.target.closest(".badge") : row && !event.target.closest(PRESSED);
  if (hit.gesture && event.isPrimary) end(hit);          // its end was not heard of
  if (!row || !surface || row.querySelector("[data-unjudged]") || event.button !== 0 || hit.sending || hit.gesture) return;
  hit.gesture = { row, handlers, id: event.pointerId, x: event.clientX, y: event.clientY + scrollY, moved: false };
  for (const [name, handler] of handlers) hit.fieldset.addEventListener(name, handler);
}

function move(hit, event) {
  const { gesture } = hit;
  if (event.pointerId !== gesture?.id) return;
  const [across, along] = [event.clientX - gesture.x, event.clientY + scrollY - gesture.y];
  if (!gesture.moved && Math.hypot(across, along) < DRAG_STARTS_PX) return;
  if (!gesture.moved) start(hit);
  gesture.row.style.translate = `${across}px ${along}px`;
  gesture.at = placeUnder(hit, event);
  mark(hit);
  if (event.clientY < EDGE_PX) scrollBy(0, -SCROLL_PX);
  if (event.clientY > innerHeight - EDGE_PX) scrollBy(0, SCROLL_PX);
}

function start({ fieldset, gesture }) {
  gesture.moved = true;
  fieldset.setPointerCapture(gesture.id);
  getSelection()?.removeAllRanges();
  fieldset.querySelector(".ranking").classList.add("dragging");
  gesture.row.classList.add("dragged");
}

const others = ({ fieldset, gesture }) => [...fieldset.querySelectorAll(".order > .row")].filter((row) => row !== gesture.row);

function placeUnder(hit, { clientX, clientY }) {
  const rest = hit.fieldset.querySelector(".unranked").getBoundingClientRect();
  const overRest = clientX >= rest.left && clientX <= rest.right && clientY >= rest.top && clientY <= rest.bottom;
  if (overRest) return null;
  return others(hit).filter((row) => middle(row) < clientY).length;
}

function middle(row) {
  const { top, height } = row.getBoundingClientRect();
  return top + height / 2;
}

// A line where it would fall.
function mark(hit) {
  const { fieldset, gesture: { at } } = hit;
  const rows = others(hit);
  rows.forEach((row, k) => {
    row.classList.toggle("falls-before", k === at);
    row.classList.toggle("falls-after", k === at - 1 && at === rows.length);
  });
  fieldset.querySelector(".ranked").classList.toggle("over", at !== null && !rows.length);
}

function release(hit, event) {
  const { gesture } = hit;
  if (event.pointerId !== gesture?.id) return;
  end(hit);
  if (!gesture.moved) return;
  hit.droppedAt = event.timeStamp;
  hit.drop(gesture.row.dataset.item, gesture.at);
}

// The browser took the gesture for scrolling, or Escape was pressed: as if nothing had happened. That the badge loses a
// finger to the HIT is no such thing.
export function cancel(hit, event) {
  if (event.type === "lostpointercapture" && event.target !== hit.fieldset) return;
  if (hit.gesture && (!("pointerId" in event) || event.pointerId === hit.gesture.id)) end(hit);
}

function end(hit) {
  const { fieldset, gesture } = hit;
  hit.gesture = null;
  for (const [name, handler] of gesture.handlers) fieldset.removeEventListener(name, handler);
  gesture.row.style.translate = "";
  for (const name of ["dragging", "dragged", "falls-before", "falls-after", "over"]) {
    for (const element of fieldset.querySelectorAll(`.${name}`)) element.classList.remove(name);
  }
}
