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
const points = (value) => String(Number(value.toPrecision(4)));
const rounded = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** Text that changes only when it differs, so that nothing flickers and no selection is lost. */
function write(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

/** The line under a chart: says what the pointer is over, and else what it said when the page was loaded. */
function readout(name, usual) {
  const element = document.querySelector(`[data-readout="${name}"]`);
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

const tellPace = readout("pace", () => state.words.pace_note);
const tellHistogram = readout("histogram");
const tellUncertainty = readout("uncertainty", () => state.uncertainty.note);

const paceBegin = (bar) => new Date((state.pace.start + bar * state.pace.minutes * 60) * 1000);

function binEnds(bin) {
  const { low, high, counts } = state.histogram;
  return [low + ((high - low) * bin) / counts.length, low + ((high - low) * (bin + 1)) / counts.length].map(points);
}

function drawWords() {
  for (const element of document.querySelectorAll("[data-word]")) write(element, state.words[element.dataset.word]);
  $("progress").max = state.wanted;
  $("progress").value = state.done;
  $("unanswered").hidden = state.answered;
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
    { begin: low, width: (high - low) / counts.length, heights: counts, xLabel: "score, points", yLabel: "items" },
    (bin) => tellHistogram(bin === null ? null : `${binEnds(bin).join(" to ")} points: ${number.format(state.histogram.counts[bin])} ${state.histogram.counts[bin] === 1 ? "item" : "items"}`),
  );
  rows("histogram", counts.map((count, bin) => [binEnds(bin).join(" to "), number.format(count)]));
}

function drawUncertainty() {
  const { points: known } = state.uncertainty;
  const words = ([answers, value]) => [number.format(answers), rounded.format(value)];
  line(
    document.querySelector('[data-plot="uncertainty"]'),
    { x: known.map(([answers]) => answers), y: known.map(([, value]) => value), xLabel: "HITs answered", yLabel: "± points" },
    (i) => {
      const [answers, value] = i === null ? [] : words(state.uncertainty.points[i]);
      tellUncertainty(i === null ? null : `After ${answers} ${answers === "1" ? "HIT" : "HITs"}: ± ${value} points`);
    },
  );
  tellUncertainty(null);
  rows("uncertainty", known.map(words));
}

// The heatmap

const canvas = $("heatmap");
const heatmapWords = $("heatmap-readout").textContent;
let cells = new Uint8Array();

const tellCell = explore(canvas, $("heatmap-cross"), (row, column) => {
  const { labels } = state.heatmap;
  write($("heatmap-readout"), row === undefined
    ? heatmapWords
    : `${labels[row]} × ${labels[column]}: q = ${rounded.format(cells[row * labels.length + column] / 255)}`);
});

function drawHeatmap() {
  const size = state.heatmap.labels.length;
  cells = decoded(state.heatmap.cells);
  paint(canvas, cells, size, size, state.heatmap.top * 255);
  write($("heatmap-top"), String(state.heatmap.top));
  tellCell();
}

$("heatmap-png").hidden = false;
$("heatmap-png").addEventListener("click", () => {
  const link = document.createElement("a");
  link.download = "match-quality.png";
  link.href = canvas.toDataURL("image/png");
  link.click();
});

// The chosen item

function drawItem() {
  sweep();
  const data = $("density");
  if (!data) return;
  const item = JSON.parse(data.textContent);
  const tell = readout("density");
  density(document.querySelector('[data-plot="density"]'), item, (i) =>
    tell(i === null ? null : `At ${item.x[i].toFixed(1)} points: ${item.now.density[i].toPrecision(3)} per point`));
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
  drawHeatmap();
}

// The parts that belong to the address

/** Replace a part if it differs; what had the focus keeps it. */
function swap(selector, fresh) {
  const old = document.querySelector(selector);
  const next = fresh.querySelector(selector);
  if (!old || !next || old.dataset.source === next.outerHTML) return;
  next.dataset.source = next.outerHTML;
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const search = old.querySelector("input[type=search]");
  if (search && search === focused) next.querySelector("input[type=search]").value = search.value;
  const scrolled = [...old.querySelectorAll(".scroll")].map((element) => [element.scrollLeft, element.scrollTop]);
  old.replaceWith(next);
  next.querySelectorAll(".scroll").forEach((element, i) => element.scrollTo(...(scrolled[i] ?? [0, 0])));
  if (focused) refocus(next, focused);
}

function refocus(next, focused) {
  const same = (element) => element.tagName === focused.tagName
    && element.getAttribute("href") === focused.getAttribute("href") && element.getAttribute("name") === focused.getAttribute("name");
  const target = [...next.querySelectorAll("a, button, input, .scroll")].find(same);
  target?.focus({ preventScroll: true });
  if (target?.type === "search") target.setSelectionRange(focused.selectionStart, focused.selectionEnd);
}

let asked = 0;

async function refresh() {
  asked += 1;
  const mine = asked;
  const reply = await fetch(location.href, { headers: { "X-Easel": "fetch" } }).catch(() => null);
  if (mine !== asked || !reply) return; // a newer question is under way, or the connection is: the next event asks again
  if (!reply.ok || reply.redirected) {
    location.reload();
    return;
  }
  const fresh = document.createElement("template");
  fresh.innerHTML = await reply.text();
  if (mine !== asked) return;
  for (const part of [".campaign-head", "#scores", "#item"]) swap(part, fresh.content);
  drawItem();
}

async function go(url) {
  history.pushState(null, "", url);
  await refresh();
  if (location.hash === "#item") $("item").scrollIntoView({ block: "nearest" });
}

dashboard.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-view]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  go(link.href);
});

dashboard.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-view]")) return;
  event.preventDefault();
  const url = new URL(event.target.action);
  for (const [name, value] of new FormData(event.target)) if (value) url.searchParams.set(name, value);
  go(url);
});

addEventListener("popstate", refresh);

// Live

const connection = $("connection");
let waiting = false; // something arrived while nobody looked

function take(event) {
  if (event.lastEventId === version) return;
  version = event.lastEventId;
  state = JSON.parse(event.data);
  if (document.hidden) {
    waiting = true;
    return;
  }
  draw();
  refresh();
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden || !waiting) return;
  waiting = false;
  draw();
  refresh();
});

const events = new EventSource(dashboard.dataset.events);
events.addEventListener("message", take);
events.addEventListener("open", () => write(connection, ""));
events.addEventListener("logged-out", () => location.reload());
events.addEventListener("error", () => {
  const over = events.readyState === EventSource.CLOSED;
  write(connection, over
    ? "Live updates have stopped. Reload the page to see what is new."
    : "The connection was lost; trying again. Answers are safe, and this page will catch up.");
});
addEventListener("pagehide", () => events.close());

paintLegend($("heatmap-legend"));
draw();
drawItem();
