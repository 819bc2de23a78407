// Ranking with scores: the plain form of numbers becomes sliders with a common strip.

import { run } from "../hit.js";
import * as keys from "./slider/keys.js";
import * as pointers from "./slider/pointers.js";
import * as rows from "./slider/rows.js";
import * as strip from "./slider/strip.js";

function begin(hit) {
  rows.begin(hit);
  pointers.begin(hit);
  keys.begin(hit);
}

run({ read: rows.read, begin, press: keys.pressAnywhere, resize: strip.draw });
