// Ranking with scores: the plain form of numbers becomes sliders with a common strip.

import * as keys from "./slider/keys.js";
import * as pointers from "./slider/pointers.js";
import * as rows from "./slider/rows.js";

export { read } from "./slider/rows.js";
export { pressAnywhere as press } from "./slider/keys.js";
export { draw as resize } from "./slider/strip.js";

export function begin(hit) {
  rows.begin(hit);
  pointers.begin(hit);
  keys.begin(hit);
}
