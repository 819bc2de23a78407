// Ranking with scores: the plain form of numbers becomes sliders with a common strip.

import { run } from "../hit.js";
import { sliders } from "./slider/sliders.js";
import * as strip from "./slider/strip.js";

run(sliders(strip));
