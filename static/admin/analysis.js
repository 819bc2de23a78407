// The analysis page: its parts are tabs. Each is fetched when it is first shown, and links within a part change that part
// alone. Without this file each part is a page of its own.

import { fetchPart, newestRequest, parsePart, replacePart } from "./parts.js";
import { makeTabsWith } from "./tabs.js";

const analysis = document.getElementById("analysis");
const announcement = document.getElementById("announcement");
const TABLE_PARAMETERS = ["table", "sort", "order", "page", "search"]; // of the address, about one table

const shownAddresses = new Map(); // the address that each part's content came from, by name
const requests = new Map(); // the function that starts a part's request, by name

const findPart = (name) => analysis.querySelector(`.part[id="${name}"]`);
const titleOf = (name) => findPart(name).querySelector("h2").firstChild.textContent.trim();

/** Return the parameters of the address that a part reads, besides those of one table. */
const ownParameters = (part) => part.dataset.own?.split(" ") ?? [];

/** Show above a part's title, where nothing has to move, how long its fit has run. Return what removes the line. */
function showBusy(name) {
  const line = document.createElement("p");
  line.className = "busy";
  const text = document.createElement("span");
  line.append(document.createElement("progress"), text);
  line.firstChild.setAttribute("aria-label", `Estimating ${titleOf(name).toLowerCase()}`);
  const startedAt = performance.now();
  const update = () => {
    const seconds = Math.floor((performance.now() - startedAt) / 1000);
    text.textContent = seconds < 2 ? "Estimating …" : `Estimating … ${seconds} s`;
  };
  update();
  const timer = setInterval(update, 1000);
  findPart(name).setAttribute("aria-busy", "true");
  findPart(name).querySelector(".busy")?.remove();
  findPart(name).prepend(line);
  return () => {
    clearInterval(timer);
    line.remove();
    findPart(name).removeAttribute("aria-busy");
  };
}

/** Show why a part could not be fetched, with a link to try again. */
function showFailure(name, message, address) {
  const line = document.createElement("p");
  line.className = "notice error";
  line.setAttribute("role", "alert");
  const link = document.createElement("a");
  link.href = address;
  link.dataset.part = "";
  link.textContent = "Try again";
  line.append(`${message} `, link);
  findPart(name).querySelector(".notice.error")?.remove();
  (findPart(name).querySelector(".title") ?? findPart(name).querySelector("h2")).after(line);
}

/** Return the message of the server's error page. */
function messageOf(html) {
  const page = new DOMParser().parseFromString(html ?? "", "text/html");
  return page.querySelector("main .refusal")?.textContent.trim() ?? "This part could not be shown.";
}

/** Fetch a part and show it; return whether it is shown. */
async function load(name, address) {
  if (!requests.has(name)) requests.set(name, newestRequest());
  const isNewest = requests.get(name)();
  const removeBusy = showBusy(name);
  const reply = await fetchPart(address).catch(() => null);
  const html = await reply?.text().catch(() => null);
  if (!isNewest()) return false;
  removeBusy();
  if (reply?.redirected) {
    location.reload(); // logged out
  } else if (reply?.ok && html) {
    const next = parsePart(html).querySelector(".part");
    next.hidden = findPart(name).hidden;
    replacePart(findPart(name), next);
    markAsTab(next);
    next.querySelectorAll(".drawing").forEach(explorePicture);
    shownAddresses.set(name, address);
    announcement.textContent = `${titleOf(name)}: shown`;
    return true;
  } else {
    showFailure(name, reply ? messageOf(html) : "The connection was lost. Nothing has changed.", address);
  }
  return false;
}

/** Follow a link within a part, and give the page an address that shows the same again. */
async function go(name, url) {
  const query = new URLSearchParams(location.search);
  const changedParameters = ownParameters(findPart(name)).filter((key) => query.get(key) !== url.searchParams.get(key));
  for (const key of [...TABLE_PARAMETERS, ...changedParameters]) {
    const value = url.searchParams.get(key);
    if (value) query.set(key, value); else query.delete(key);
  }
  const pageAddress = hasAllParts ? `${analysis.dataset.address}?${query}#${name}` : url.pathname + url.search;
  if (!await load(name, url.pathname + url.search)) return;
  history.pushState(Object.fromEntries(shownAddresses), "", pageAddress);
  for (const other of analysis.querySelectorAll(".part")) {
    if (other.id !== name && ownParameters(other).some((key) => changedParameters.includes(key))) {
      other.dataset.waiting = `${analysis.dataset.address}/${other.id}?${query}`;
    }
  }
}

analysis.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-part], a[data-open]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  if (link.dataset.open && !(hasAllParts && findPart(link.dataset.open))) return;
  event.preventDefault();
  if (link.dataset.open) openPart(link.dataset.open);
  else go(link.closest(".part").id, new URL(link.href));
});

analysis.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-part]")) return;
  event.preventDefault();
  const url = new URL(event.target.action);
  url.search = new URLSearchParams([...new FormData(event.target)].filter(([, value]) => value));
  go(event.target.closest(".part").id, url);
});

addEventListener("popstate", (event) => {
  for (const [name, address] of Object.entries(event.state ?? {})) {
    if (findPart(name) && shownAddresses.get(name) !== address) findPart(name).dataset.waiting = address;
  }
  if (hasAllParts) showPart(partOfAddress());
  else for (const { id, dataset } of analysis.querySelectorAll("[data-waiting]")) load(id, dataset.waiting);
});

// Pictures: the dot nearest to the pointer is described below the picture.

const MAX_DISTANCE = 24; // pixels

function explorePicture(frame) {
  const picture = frame.querySelector("svg");
  const readout = document.getElementById(picture.getAttribute("aria-describedby"));
  const usualText = readout.textContent;
  const dots = [...picture.querySelectorAll(".dot")];
  for (const dot of dots) {
    dot.dataset.words = dot.querySelector("title").textContent;
    dot.querySelector("title").remove(); // shown at once below, instead of later beside the pointer
  }
  let nearest = null;
  const highlight = (dot, isNear) => {
    if (!dot) return;
    const intervals = picture.querySelectorAll(`.interval[data-dot="${dots.indexOf(dot)}"]`);
    for (const element of [dot, ...intervals]) element.classList.toggle("near", isNear);
  };
  const show = (dot) => {
    if (dot === nearest) return;
    highlight(nearest, false);
    nearest = dot;
    highlight(nearest, true);
    readout.textContent = nearest ? nearest.dataset.words : usualText;
  };
  frame.addEventListener("pointermove", (event) => {
    let [bestDistance, bestDot] = [MAX_DISTANCE, null];
    for (const dot of dots) {
      const box = dot.getBoundingClientRect();
      const distance = Math.hypot(event.clientX - (box.left + box.right) / 2, event.clientY - (box.top + box.bottom) / 2);
      if (distance < bestDistance) [bestDistance, bestDot] = [distance, dot];
    }
    show(bestDot);
  });
  frame.addEventListener("pointerleave", () => show(null));
}

analysis.querySelectorAll(".drawing").forEach(explorePicture);

// Tabs

const tabs = analysis.querySelector(".tabs");
const hasAllParts = analysis.querySelectorAll("[data-waiting]").length > 0;
const showTab = hasAllParts ? makeTabsWith(tabs, openPart) : null;

/** Return the part that the address names, else the first one. */
function partOfAddress() {
  const named = findPart(CSS.escape(location.hash.slice(1)));
  return (named ?? analysis.querySelector(".part")).id;
}

/** Show a part, and fetch it if it was not shown before or has changed. */
async function showPart(name) {
  showTab(name);
  const { waiting } = findPart(name).dataset;
  if (waiting && await load(name, waiting)) history.replaceState(Object.fromEntries(shownAddresses), "");
}

/** Show a part that was chosen, and keep the choice in the address. */
function openPart(name) {
  history.pushState(Object.fromEntries(shownAddresses), "", `${location.pathname}${location.search}#${name}`);
  showPart(name);
  tabs.scrollIntoView({ block: "nearest", behavior: "instant" });
}

/** Tell a part that has just been fetched that it belongs to a tab. */
function markAsTab(part) {
  if (hasAllParts) part.setAttribute("role", "tabpanel");
}

addEventListener("hashchange", () => { if (hasAllParts) showPart(partOfAddress()); });
if (hasAllParts) showPart(partOfAddress());
history.replaceState(Object.fromEntries(shownAddresses), "");
