// A campaign's page while one watches. Without this file the page is complete, as of when it was loaded.
//
// Figures that everyone sees arrive as server-sent events, each a whole state. The table and the chosen item depend on the
// page's address, so they are fetched again when an event says that something changed.

import { bars, density, line, sweep } from "./charts.js";
import { decoded, explore, paint, paintLegend } from "./heatmap.js";

const $ = (id) => document.getElementById(id);
const dashboard = $("dashboard");
let state = JSON.parse($("state").textContent);
let version = dashboard.dataset.version;

const number = new Intl.NumberFormat();
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
/** The number that stands at a place of a unit, 0 to 100: of a ratio to a reference, the odds. */
const numberAt = (place, digits) => String(Number((state.unit.ticks ? place / (100 - place) : place).toPrecision(digits))).replace("-", "−");
const rounded = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** Text that changes only when it differs, so that nothing flickers and no selection is lost. Whether it did. */
function write(element, words) {
  if (element.textContent === words) return false;
  element.textContent = words;
  return true;
}

/** Tint what has just changed, for a second. */
function tint(element) {
  element.classList.remove("changed");
  void element.offsetWidth; // the animation begins anew
  element.classList.add("changed");
}

/** The line under a chart: says what the pointer is over, and else what it said when the page was loaded. */
function readout(name, usual) {
  const element = document.querySelector(`[data-readout="${name}"]`);
  if (!element) return () => false;
  element.dataset.usual ??= element.textContent;
  return (words) => write(element, words ?? usual?.() ?? element.dataset.usual);
}

function rows(name, lines) {
  const body = document.querySelector(`[data-rows="${name}"]`);
  body.replaceChildren(...lines.map(([first, second]) => {
    const row = document.createElement("tr");
    row.insertCell().textContent = first;
    const cell = row.insertCell();
    cell.textContent = second;
    cell.className = "figure";
    return row;
  }));
}

// Words and bars

const clock = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });

/** The time of day, and the day unless it is today. */
const doneWords = (done) => (done.toDateString() === new Date().toDateString() ? clock : moment).format(done);

let updated = Date.now();
let live = false; // whether the stream of events is open

function tellUpdated() {
  const seconds = Math.max(0, Math.round((Date.now() - updated) / 1000));
  const [count, unit] = seconds < 60 ? [seconds, "s"] : seconds < 3600 ? [Math.floor(seconds / 60), "min"] : [Math.floor(seconds / 3600), "h"];
  write($("updated"), `${live ? "live · " : ""}updated ${count} ${unit} ago`);
}

setInterval(tellUpdated, 1000);
tellUpdated();

const tellPace = readout("pace", () => state.words.pace_note);
const tellHistogram = readout("histogram");
const tellUncertainty = readout("uncertainty", () => state.uncertainty.note);

const paceBegin = (bar) => new Date((state.pace.start + bar * state.pace.minutes * 60) * 1000);

function binEnds(bin) {
  const { low, high, counts } = state.histogram;
  return [low + ((high - low) * bin) / counts.length, low + ((high - low) * (bin + 1)) / counts.length].map((place) => numberAt(place, state.unit.ticks ? 2 : 4));
}

function drawWords() {
  for (const element of document.querySelectorAll("[data-word]")) {
    if (write(element, state.words[element.dataset.word]) && element.tagName === "DD") tint(element);
  }
  $("progress").max = state.wanted;
  $("progress").value = state.done;
  $("done-at").hidden = !state.done_at;
  if (state.done_at) write($("done-at").querySelector("time"), doneWords(new Date(state.done_at * 1000)));
  $("begin").hidden = state.answered;
  $("figures").hidden = !state.answered;
  write($("bar-minutes"), String(state.pace.minutes));
}

function drawPace() {
  const heights = state.pace.bars;
  bars(
    document.querySelector('[data-plot="pace"]'),
    {
      begin: state.pace.start, width: state.pace.minutes * 60, heights, time: true, filling: state.status === "running",
      xLabel: "time", yLabel: "HITs per hour",
    },
    (bar) => tellPace(bar === null ? null : `From ${moment.format(paceBegin(bar))}: ${number.format(state.pace.bars[bar])} HITs per hour`),
  );
  tellPace(null);
  rows("pace", heights.map((hits, bar) => [moment.format(paceBegin(bar)), number.format(hits)]));
}

function drawHistogram() {
  const { low, high, counts } = state.histogram;
  bars(
    document.querySelector('[data-plot="histogram"]'),
    { begin: low, width: (high - low) / counts.length, heights: counts, unit: state.unit, yLabel: "items" },
    (bin) => tellHistogram(bin === null ? null : `${`${binEnds(bin).join(" to ")} ${state.unit.sign}`.trim()}: ${number.format(state.histogram.counts[bin])} ${state.histogram.counts[bin] === 1 ? "item" : "items"}`),
  );
  rows("histogram", counts.map((count, bin) => [binEnds(bin).join(" to "), number.format(count)]));
}

function drawUncertainty() {
  if (!document.querySelector('[data-plot="uncertainty"]')) return; // labels without an order have no interval
  const { points: known } = state.uncertainty;
  const words = ([answers, value]) => [number.format(answers), rounded.format(value)];
  line(
    document.querySelector('[data-plot="uncertainty"]'),
    { x: known.map(([answers]) => answers), y: known.map(([, value]) => value), changes: state.uncertainty.changes, xLabel: "HITs answered", yLabel: state.unit_of_means.spread },
    (i) => {
      const [answers, value] = i === null ? [] : words(state.uncertainty.points[i]);
      tellUncertainty(i === null ? null : `After ${answers} ${answers === "1" ? "HIT" : "HITs"}: ${state.unit_of_means.spread.replace(/^\S+/, `$& ${value}`)}`);
    },
  );
  tellUncertainty(null);
  rows("uncertainty", known.map(words));
}

/** Of how many items each label is the likeliest. */
function drawClasses() {
  if (!state.classes) return;
  const most = Math.max(1, ...state.classes.map(([, items]) => items));
  document.querySelectorAll('[data-counts="classes"] tr').forEach((row, place) => {
    const items = state.classes[place][1];
    row.querySelector("rect").setAttribute("width", `${(100 * items) / most}%`);
    write(row.cells[2], number.format(items));
    row.hidden = items === 0 && state.classes.length > 13;
  });
}

// The heatmap, where items stand on a scale

const canvas = $("heatmap");
const heatmapWords = $("heatmap-readout")?.textContent;
let cells = new Uint8Array();

const tellCell = canvas && explore(canvas, $("heatmap-cross"), (row, column) => {
  const { labels } = state.heatmap;
  write($("heatmap-readout"), row === undefined
    ? heatmapWords
    : `${labels[row]} × ${labels[column]}: q = ${rounded.format(cells[row * labels.length + column] / 255)}`);
});

function drawHeatmap() {
  if (!canvas) return;
  const size = state.heatmap.labels.length;
  cells = decoded(state.heatmap.cells);
  paint(canvas, cells, size, size, state.heatmap.top * 255);
  write($("heatmap-top"), String(state.heatmap.top));
  tellCell();
}

function offerPicture() {
  $("heatmap-png").hidden = false;
  $("heatmap-png").addEventListener("click", () => {
    const link = document.createElement("a");
    link.download = "match-quality.png";
    link.href = canvas.toDataURL("image/png");
    link.click();
  });
}

// The chosen item

function drawItem() {
  sweep();
  const data = $("density");
  if (!data) return;
  const item = JSON.parse(data.textContent);
  const tell = readout("density");
  density(document.querySelector('[data-plot="density"]'), { ...item, unit: state.unit }, (i) =>
    tell(i === null ? null : `At ${numberAt(item.x[i], 3)}${state.unit.sign && ` ${state.unit.sign}`}: ${state.unit.density} ${item.now.density[i].toPrecision(3)}`));
  for (const time of $("item").querySelectorAll("time[datetime]")) {
    time.title ||= time.textContent;
    write(time, moment.format(new Date(time.dateTime)));
  }
}

function draw() {
  drawWords();
  drawPace();
  drawHistogram();
  drawUncertainty();
  drawClasses();
  drawHeatmap();
}

// The parts that belong to the address

const still = matchMedia("(prefers-reduced-motion: reduce)");

/** Where each row of a part stands, and what is in it. */
function standing(part) {
  return new Map([...part.querySelectorAll("tr[data-key]")].map((row) => [
    row.dataset.key, { top: row.getBoundingClientRect().top, words: [...row.cells].map((cell) => cell.textContent) },
  ]));
}

/** Rows slide from where they stood, and figures that differ are tinted. */
function showChanges(part, before) {
  for (const row of part.querySelectorAll("tr[data-key]")) {
    const { top, words } = before.get(row.dataset.key) ?? {};
    if (!words) continue;
    const way = top - row.getBoundingClientRect().top;
    if (Math.abs(way) >= 1 && !still.matches) {
      row.animate([{ transform: `translateY(${way}px)` }, { transform: "none" }], { duration: 150, easing: "ease-out" });
    }
    [...row.cells].forEach((cell, i) => { if (cell.matches(".figure:not(.place)") && cell.textContent !== words[i]) tint(cell); });
  }
}

/** Replace a part if it differs; what had the focus keeps it, what was open stays open. `live`: because of an answer. */
function swap(selector, fresh, live) {
  const old = document.querySelector(selector);
  const next = fresh.querySelector(selector);
  if (!old || !next || old.dataset.source === next.outerHTML) return;
  next.dataset.source = next.outerHTML;
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const search = old.querySelector("input[type=search]");
  if (search && search === focused) next.querySelector("input[type=search]").value = search.value;
  const opened = [...old.querySelectorAll("details")].map((details) => details.open);
  const before = live ? standing(old) : new Map();
  const scrolled = [...old.querySelectorAll(".scroll")].map((element) => [element.scrollLeft, element.scrollTop]);
  old.replaceWith(next);
  next.querySelectorAll(".scroll").forEach((element, i) => element.scrollTo(...(scrolled[i] ?? [0, 0])));
  next.querySelectorAll("details").forEach((details, i) => { details.open = opened[i] ?? false; });
  if (focused) refocus(next, focused);
  showChanges(next, before);
}

function refocus(next, focused) {
  const same = (element) => element.tagName === focused.tagName
    && element.getAttribute("href") === focused.getAttribute("href") && element.getAttribute("name") === focused.getAttribute("name");
  const target = [...next.querySelectorAll("a, button, input, .scroll")].find(same);
  target?.focus({ preventScroll: true });
  if (target?.type === "search") target.setSelectionRange(focused.selectionStart, focused.selectionEnd);
}

let refreshes = 0;

async function refresh({ live = false } = {}) {
  refreshes += 1;
  const mine = refreshes;
  const reply = await fetch(location.href, { headers: { "X-Easel": "fetch" } }).catch(() => null);
  if (mine !== refreshes || !reply) return; // a newer question is under way, or the connection is: the next event asks again
  if (!reply.ok || reply.redirected) {
    location.reload();
    return;
  }
  const fresh = document.createElement("template");
  fresh.innerHTML = await reply.text();
  if (mine !== refreshes) return;
  for (const part of [".campaign-head", ".by-criterion", "#without-crowd", "#left-over", "#scores", "#item", "#unjudged"]) swap(part, fresh.content, live);
  drawItem();
}

async function go(url, { replace = false } = {}) {
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  await refresh();
  if (location.hash === "#item" && !replace) $("item").scrollIntoView({ block: "nearest" });
}

// Through the items by key: arrows from one to the next, over the ends of a page too; Escape closes.

const links = () => [...document.querySelectorAll(".scores tbody a")];

async function walk(step) {
  const all = links();
  const next = all[all.indexOf(document.activeElement) + step];
  if (next) {
    next.focus();
    await go(next.href, { replace: !$("item").hidden });
    return;
  }
  const page = document.querySelector(`.scores .pager a[rel=${step > 0 ? "next" : "prev"}]`);
  if (!page) return;
  await go(page.href, { replace: true });
  const first = links().at(step > 0 ? 0 : -1);
  first?.focus();
  if (first) await go(first.href, { replace: true });
}

async function close(link) {
  const shown = document.querySelector(".scores tr.chosen")?.dataset.key;
  await go(link.href);
  document.querySelector(`.scores tr[data-key="${shown}"] a`)?.focus();
}

addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || event.shiftKey) return;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const link = $("item").querySelector(".close");
  if (step && event.target.matches(".scores tbody a")) {
    event.preventDefault();
    walk(step);
  } else if (event.key === "Escape" && link && !event.defaultPrevented && !event.target.matches("input")) {
    event.preventDefault();
    close(link);
  }
});

dashboard.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-view]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  if (link.matches(".close")) close(link);
  else go(link.href);
});

dashboard.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-view]")) return;
  event.preventDefault();
  const url = new URL(event.target.action);
  for (const [name, value] of new FormData(event.target)) if (value) url.searchParams.set(name, value);
  go(url);
});

addEventListener("popstate", () => refresh());

// Live

const connection = $("connection");
let waiting = false; // something arrived while nobody looked

function take(event) {
  if (event.lastEventId === version) return;
  version = event.lastEventId;
  state = JSON.parse(event.data);
  updated = Date.now();
  if (document.hidden) {
    waiting = true;
    return;
  }
  draw();
  tellUpdated();
  refresh({ live: true });
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden || !waiting) return;
  waiting = false;
  draw();
  tellUpdated();
  refresh({ live: true });
});

const events = new EventSource(dashboard.dataset.events);
events.addEventListener("message", take);
events.addEventListener("open", () => {
  live = true;
  tellUpdated();
  write(connection, "");
});
events.addEventListener("logged-out", () => location.reload());
events.addEventListener("error", () => {
  const over = events.readyState === EventSource.CLOSED;
  live = false;
  tellUpdated();
  if (over) refresh(); // leads to the login if that has ended
  write(connection, over
    ? "Live updates have stopped. Reload the page to see what is new."
    : "The connection was lost; trying again. Answers are safe, and this page will catch up.");
});
addEventListener("pagehide", () => events.close());

if (canvas) {
  offerPicture();
  paintLegend($("heatmap-legend"));
}
draw();
drawItem();
