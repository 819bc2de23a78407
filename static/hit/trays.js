// What sticks to an edge of the window covers nothing that has the focus.

import { all } from "./page.js";

const CONTEXT = ".hit > .beside-items";      // such as the prompt of all outputs
const STICKING = `${CONTEXT}, .dock, .finish, .strip, .strip > .ends, .heads, .stays, .side-name`;
const MOST_OF_WINDOW = 0.35;                 // a higher context scrolls away, so that outputs keep their room

let observer;

/** Follow the height of all that sticks to an edge of a HIT's page. */
export function begin(hit) {
  observer?.disconnect();
  observer = new ResizeObserver(() => fit(hit));
  for (const element of all(hit.form, STICKING)) observer.observe(element);
  fit(hit);
}

export function fit(hit) {
  const { style } = document.documentElement;
  const context = hit.form.querySelector(CONTEXT);
  context?.toggleAttribute("data-stays", context.offsetHeight <= MOST_OF_WINDOW * innerHeight);
  const isStaying = context && getComputedStyle(context).position === "sticky";
  style.setProperty("--context", `${isStaying ? context.offsetHeight : 0}px`);
  const covered = { top: 0, bottom: 0 };
  for (const element of all(hit.form, STICKING)) {
    const own = getComputedStyle(element);
    const edge = ["top", "bottom"].find((side) => own.position === "sticky" && own[side] !== "auto");
    if (edge) covered[edge] = Math.max(covered[edge], element.offsetHeight + Math.max(0, parseFloat(own[edge])));
  }
  style.scrollPaddingTop = `${covered.top + 16}px`;
  style.scrollPaddingBottom = `${covered.bottom + 16}px`;
  style.setProperty("--tray", `${covered.bottom + 16}px`);
}
