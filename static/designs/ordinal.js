// An ordinal scale: radio buttons in rows, and digits that choose in the row in hand.

import { run } from "../hit.js";
import { chosenByKeys } from "../hit/choices.js";

run(chosenByKeys());
