// Rating: sliders that have nothing in common.

import { run } from "../hit.js";
import { sliders } from "./slider/sliders.js";

run(sliders());
