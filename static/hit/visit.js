// Who came by link and began is offered to go on: Back, or the link opened again, would else make them someone new.
// Their place is an address, kept in this browser; nothing of it is sent anywhere.

import { stored } from "./page.js";

const HOUR_MS = 3_600_000;
const storageKey = () => `easel:visit:${location.pathname}`;

const kept = () => JSON.parse(stored("localStorage", (storage) => storage.getItem(storageKey())) ?? "null");

export function remember() {
  const token = new URLSearchParams(location.search).get("t");
  if (!token || token === kept()?.token) return;
  stored("localStorage", (storage) => storage.setItem(storageKey(), JSON.stringify({ token, at: Date.now() })));
}

export function offer() {
  const place = document.querySelector(".continue");
  const visit = kept();
  if (!place || !visit || Date.now() - visit.at > place.dataset.hours * HOUR_MS) return;
  const start = document.querySelector(".start button");
  const address = new URL(location.href);
  address.searchParams.set("t", visit.token);
  place.querySelector("a").href = address.search;
  place.hidden = false;
  start.classList.remove("primary");
  start.textContent = start.dataset.again;
  place.parentElement.querySelector("[name=start]")?.remove();  // else the press would lead to the visit of before
}
