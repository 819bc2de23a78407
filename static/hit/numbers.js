// Numbers up to ten as people say them, by the number itself.

import { words } from "./words.js";

export const COUNTS = [
  words("no"), words("one"), words("two"), words("three"), words("four"), words("five"),
  words("six"), words("seven"), words("eight"), words("nine"), words("ten"),
];
export const ORDINALS = [
  "", words("first"), words("second"), words("third"), words("fourth"), words("fifth"),
  words("sixth"), words("seventh"), words("eighth"), words("ninth"), words("tenth"),
];
export const PLACES = [
  "", words("1st"), words("2nd"), words("3rd"), words("4th"), words("5th"),
  words("6th"), words("7th"), words("8th"), words("9th"), words("10th"),
];
