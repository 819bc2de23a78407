// Keys that choose an item by its letter, whatever a design does with it then, and those that every HIT has.

import { press, taken, withModifier } from "./keys.js";

// The row, [data-letter], of a key that is pressed anywhere; null for every other key. Of a keyboard that writes other
// letters it is the key where a Latin one has this letter.
export function rowOfKey(hit, event) {
  const { key, code } = event;
  if (taken(event) || hit.sending || press(hit, event) || withModifier(event)) return null;
  const latin = /^[a-z]$/i.test(key) || key.length > 1 ? key : code?.replace(/^Key/, "") ?? "";
  return hit.fieldset.querySelector(`[data-letter="${CSS.escape(latin.toLowerCase())}"]`);
}
