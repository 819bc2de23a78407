// A campaign's page while it is open. Without this file the page is complete, as of when it was loaded.
//
// Figures that everyone sees arrive as server-sent events, each a whole state. The table and the chosen item depend on the
// page's address, so they are fetched again after each event.

import { drawFigures, drawItem } from "./figures.js";
import { fetchPart, newestRequest, parsePart, replacePart } from "./parts.js";
import { makeTabs } from "./tabs.js";
import { setText } from "./text.js";
import { localizeTimes } from "./times.js";

const SEARCH_DELAY_MS = 250;
const MIN_MS_BETWEEN_UPDATES = 2000;
const RECONNECT_MS = 5000;
const PARTS = [".campaign-head", ".by-criterion", "#without-crowd", "#left-over", "#lessons", "#cards", "#scores", "#item", "#unjudged", "#match-matrix", "#course", "#timeline"];

const byId = (id) => document.getElementById(id);
const dashboard = byId("dashboard");

// Parts that depend on the address

const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
const startRefresh = newestRequest();
const sourceByPart = new Map(); // the HTML that each part was made from, so that equal parts are left alone

/** Fetch the parts again and replace those that differ. `isLive`: because of an answer, so that changes are shown. */
async function refresh({ isLive = false } = {}) {
  const isNewest = startRefresh();
  const reply = await fetchPart(location.href).catch(() => null);
  if (!isNewest() || !reply) return; // a newer request is under way, or the next event tries again
  if (reply.status >= 500) return; // the server, or a proxy before it, will be back
  if (!reply.ok || reply.redirected) {
    location.reload();
    return;
  }
  const html = await reply.text();
  if (!isNewest()) return;
  const fresh = parsePart(html);
  for (const selector of PARTS) {
    const [old, next] = [document.querySelector(selector), fresh.querySelector(selector)];
    if (!old || !next || sourceByPart.get(selector) === next.outerHTML) continue;
    sourceByPart.set(selector, next.outerHTML);
    const topsBefore = isLive ? topsOfRows(old) : new Map();
    replacePart(old, next);
    slideRows(next, topsBefore);
    localizeTimes(next);
  }
  dashboard.classList.toggle("with-drawer", !byId("item").hidden);
  drawItem();
}

/** Return how far from the top of the window each row of a part is, by key. */
const topsOfRows = (part) =>
  new Map([...part.querySelectorAll("tr[data-key]")].map((row) => [row.dataset.key, row.getBoundingClientRect().top]));

/** Let rows slide from where they were. */
function slideRows(part, topsBefore) {
  if (reducedMotion.matches) return;
  for (const row of part.querySelectorAll("tr[data-key]")) {
    const distance = topsBefore.get(row.dataset.key) - row.getBoundingClientRect().top;
    if (Math.abs(distance) >= 1) {
      row.animate([{ transform: `translateY(${distance}px)` }, { transform: "none" }], { duration: 150, easing: "ease-out" });
    }
  }
}

// Navigation within the page

async function go(address, { replace = false } = {}) {
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  await refresh();
}

/** Open the drawer of an item and move the focus into it. */
async function openItem(link) {
  await go(link.href);
  byId("item-title")?.focus({ preventScroll: true });
}

const itemLinks = () => [...document.querySelectorAll(".scores tbody a")];

/** Show the next (1) or the previous (-1) item, on another page of the table if need be. The drawer keeps the focus. */
async function moveToItem(step) {
  const links = itemLinks();
  const isInDrawer = byId("item").contains(document.activeElement);
  const current = isInDrawer ? links.find((link) => link.ariaCurrent ?? link.getAttribute("aria-current")) : document.activeElement;
  const next = links[links.indexOf(current) + step];
  if (next) {
    if (!isInDrawer) next.focus();
    await go(next.href, { replace: !byId("item").hidden });
    return;
  }
  const pageLink = document.querySelector(`.scores .pager a[rel=${step > 0 ? "next" : "prev"}]`);
  if (!pageLink) return;
  await go(pageLink.href, { replace: true });
  const link = itemLinks().at(step > 0 ? 0 : -1);
  if (!isInDrawer) link?.focus();
  if (link) await go(link.href, { replace: true });
}

async function closeItem(link) {
  const key = document.querySelector(".scores tr.chosen")?.dataset.key;
  await go(link.href);
  document.querySelector(`.scores tr[data-key="${key}"] a`)?.focus();
}

/** Close an open menu and return whether there was one. */
function closeMenu() {
  const menu = document.querySelector("details.menu[open]");
  if (!menu) return false;
  menu.open = false;
  menu.querySelector("summary").focus();
  return true;
}

addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || event.shiftKey) return;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const closeLink = byId("item").querySelector(".close");
  if (step && event.target.matches(".scores tbody a, #item-title")) {
    event.preventDefault();
    moveToItem(step);
  } else if (event.key === "Escape" && closeMenu()) {
    event.preventDefault();
  } else if (event.key === "Escape" && closeLink && !event.defaultPrevented && !event.target.matches("input")) {
    event.preventDefault();
    closeItem(closeLink);
  }
});

dashboard.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-view]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  if (link.matches(".close")) closeItem(link);
  else if (link.hash === "#item") openItem(link);
  else go(link.href);
});

/** Show the view that a form describes. */
function goToForm(form, options) {
  const address = new URL(form.action);
  const fields = new FormData(form);
  for (const [name, value] of fields) {
    const isRedundant = value === "none" && fields.getAll(name).length > 1; // it says that no box is checked
    if (value && !isRedundant) address.searchParams.append(name, value);
  }
  return go(address, options);
}

dashboard.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-view]")) return;
  event.preventDefault();
  clearTimeout(waitingSearch);
  goToForm(event.target);
});

let waitingSearch = 0;
dashboard.addEventListener("input", ({ target }) => {
  if (target.type !== "search" || !target.form?.matches("[data-typed]")) return;
  clearTimeout(waitingSearch);
  waitingSearch = setTimeout(() => goToForm(target.form, { replace: true }), SEARCH_DELAY_MS);
});
dashboard.addEventListener("change", ({ target }) => {
  if (!target.matches("form[data-view] :is(select, [type=checkbox])")) return;
  if (target.name === "by") target.form.elements.value?.remove(); // the value of another column
  goToForm(target.form);
});

addEventListener("popstate", () => refresh());

// Live updates

let { version } = dashboard.dataset;
let newestState = null; // what arrived and is not drawn yet, while no one looks
let updatedAt = Date.now();
let isConnected = false;
let shownAt = -MIN_MS_BETWEEN_UPDATES;
let waitingUpdate = 0; // the timer of an update that came too soon

function showAge() {
  const seconds = Math.max(0, Math.round((Date.now() - updatedAt) / 1000));
  const [count, unit] = seconds < 60 ? [seconds, "s"] : seconds < 3600 ? [Math.floor(seconds / 60), "min"] : [Math.floor(seconds / 3600), "h"];
  setText(byId("updated"), `${isConnected ? "live · " : ""}updated ${count} ${unit} ago`);
}

/** Draw the newest state, but no sooner than `MIN_MS_BETWEEN_UPDATES` after the last one, so that figures can be read. */
function showNewestState() {
  const waitMs = shownAt + MIN_MS_BETWEEN_UPDATES - performance.now();
  if (document.hidden || !newestState || waitingUpdate) return;
  if (waitMs > 0) {
    waitingUpdate = setTimeout(() => { waitingUpdate = 0; showNewestState(); }, waitMs);
    return;
  }
  shownAt = performance.now();
  drawFigures(newestState);
  newestState = null;
  showAge();
  refresh({ isLive: true });
}

let events = null;

/** Receive states. A browser tries again by itself, except after a refusal, such as that of a server that starts. */
function receiveStates() {
  events = new EventSource(dashboard.dataset.events);
  events.addEventListener("message", (event) => {
    if (event.lastEventId === version) return;
    version = event.lastEventId;
    newestState = JSON.parse(event.data);
    updatedAt = Date.now();
    showNewestState();
  });
  events.addEventListener("open", () => {
    isConnected = true;
    showAge();
    if (byId("connection").textContent) refresh(); // what was chosen meanwhile may have been refused
    setText(byId("connection"), "");
  });
  events.addEventListener("logged-out", () => location.reload());
  events.addEventListener("error", () => {
    isConnected = false;
    showAge();
    setText(byId("connection"), "The connection was lost. Trying again. Answers are safe, and this page will catch up.");
    if (events.readyState !== EventSource.CLOSED) return;
    refresh(); // leads to the login if the session has ended
    setTimeout(receiveStates, RECONNECT_MS);
  });
}

addEventListener("pagehide", () => events.close());
document.addEventListener("visibilitychange", showNewestState);

receiveStates();
makeTabs(document.querySelector("[data-tabs]"), "chart");
setInterval(showAge, 1000);
showAge();
drawFigures();
drawItem();
