// Keys that choose an item by its letter, whatever a design does with it then, and those that every HIT has.

import { latinKey, press, taken, withModifier } from "./keys.js";

// The row, [data-letter], of a key that is pressed anywhere; null for every other key.
export function rowOfKey(hit, event) {
  if (taken(event) || hit.sending || press(hit, event) || withModifier(event)) return null;
  return hit.fieldset.querySelector(`[data-letter="${CSS.escape(latinKey(event))}"]`);
}
