// A design of sliders, for `run`: what becomes of the plain form of numbers. `strip` is what all rows have in common, if
// anything.

import * as keys from "./keys.js";
import * as pointers from "./pointers.js";
import * as rows from "./rows.js";

const NONE = { begin() {}, draw() {} };

export function sliders(strip = NONE) {
  return {
    read: (root, name) => rows.read(root, name, strip),
    begin(hit) {
      rows.begin(hit);
      pointers.begin(hit);
      keys.begin(hit);
    },
    press: keys.pressAnywhere,
    resize: strip.draw,
  };
}
