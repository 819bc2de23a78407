// What sticks to an edge of the window covers nothing that has the focus.

import { all } from "./page.js";

const STICKING = ".hit > .beside-items, .dock, .finish, .strip, .strip > .ends, .heads, .stays, .side-name";

let observer;

/** Follow the height of all that sticks to an edge of a HIT's page. */
export function begin(hit) {
  observer?.disconnect();
  observer = new ResizeObserver(() => fit(hit));
  for (const element of all(hit.form, STICKING)) observer.observe(element);
  fit(hit);
}

export function fit(hit) {
  const covered = { top: 0, bottom: 0 };
  for (const element of all(hit.form, STICKING)) {
    const style = getComputedStyle(element);
    const edge = ["top", "bottom"].find((side) => style.position === "sticky" && style[side] !== "auto");
    if (edge) covered[edge] = Math.max(covered[edge], element.offsetHeight + parseFloat(style[edge]));
  }
  const { style } = document.documentElement;
  style.scrollPaddingTop = `${covered.top + 16}px`;
  style.scrollPaddingBottom = `${covered.bottom + 16}px`;
  style.setProperty("--tray", `${covered.bottom + 16}px`);
}
