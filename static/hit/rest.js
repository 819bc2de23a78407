// Suggests a break after long work in this tab; a press puts the line away.

import { stored } from "./page.js";

const BEGAN = "easel:began";
const MINUTE_MS = 60_000;

const began = () => Number(stored("sessionStorage", (storage) => storage.getItem(BEGAN))) || restart();

function restart() {
  const now = Date.now();
  stored("sessionStorage", (storage) => storage.setItem(BEGAN, String(now)));
  return now;
}

let due;

export function begin() {
  clearTimeout(due);
  const line = document.querySelector(".pause");
  if (!line) return;
  line.querySelector("button").addEventListener("click", () => { line.hidden = true; restart(); begin(); });
  due = setTimeout(() => { line.hidden = false; }, Math.max(0, began() + line.dataset.minutes * MINUTE_MS - Date.now()));
}
