// The figures of a campaign's page: headline numbers, charts, heatmap and the curve of the chosen item.

import { bars, density, line, sweep } from "./charts.js";
import { decoded, explore, paint, paintLegend } from "./heatmap.js";
import { setText } from "./text.js";
import { formatMoment, localizeTimes } from "./times.js";

const byId = (id) => document.getElementById(id);
const plot = (name) => document.querySelector(`[data-plot="${name}"]`);
const wholeNumber = new Intl.NumberFormat();
const twoDecimals = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 2 });

const MIN_PACE_BARS = 3; // fewer say nothing that the table does not say
let state = JSON.parse(byId("state").textContent);

/** Draw all figures of a newer state. */
export function drawFigures(newState = state) {
  state = newState;
  drawHeadline();
  drawPace();
  drawHistogram();
  drawUncertainty();
  drawClasses();
  drawHeatmap();
}

/** Return the value at a place from 0 to 100 on the axis; for ratios to a reference, the odds. */
const valueAt = (place, digits) => String(Number((state.unit.ticks ? place / (100 - place) : place).toPrecision(digits))).replace("-", "−");

/** Return a function that shows text under a chart; without text, what `usualText` returns or the line said at first. */
function readout(name, usualText) {
  const element = document.querySelector(`[data-readout="${name}"]`);
  if (!element) return () => false;
  element.dataset.usual ??= element.textContent;
  return (text) => setText(element, text ?? usualText?.() ?? element.dataset.usual);
}

/** Fill the table of a chart with pairs of texts. */
function fillTable(name, pairs) {
  const body = document.querySelector(`[data-rows="${name}"]`);
  body.replaceChildren(...pairs.map(([heading, figure]) => {
    const row = document.createElement("tr");
    row.insertCell().textContent = heading;
    const cell = row.insertCell();
    cell.textContent = figure;
    cell.className = "figure";
    return row;
  }));
}

function drawHeadline() {
  const { progress, people } = state.cards;
  const texts = { ...state.words, judgments: progress.value, annotators: people.value };
  for (const element of document.querySelectorAll("[data-word]")) {
    const text = texts[element.dataset.word];
    if (text !== undefined) setText(element, text);
  }
  byId("begin").hidden = state.answered;
  byId("figures").hidden = !state.answered;
  setText(byId("bar-minutes"), String(state.pace.minutes));
}

const showPaceReadout = readout("pace", () => state.words.pace_note);
const showHistogramReadout = readout("histogram");
const showUncertaintyReadout = readout("uncertainty", () => state.uncertainty.note);

function drawPace() {
  const heights = state.pace.bars;
  plot("pace").hidden = heights.length < MIN_PACE_BARS;
  const startOf = (bar) => formatMoment(new Date((state.pace.start + bar * state.pace.minutes * 60) * 1000));
  bars(
    plot("pace"),
    {
      begin: state.pace.start, width: state.pace.minutes * 60, heights, time: true, filling: state.status === "running",
      xLabel: "time", yLabel: "tasks per hour",
    },
    (bar) => showPaceReadout(bar === null ? null : `From ${startOf(bar)}: ${wholeNumber.format(state.pace.bars[bar])} tasks per hour`),
  );
  showPaceReadout(null);
  fillTable("pace", heights.map((hits, bar) => [startOf(bar), wholeNumber.format(hits)]));
}

function drawHistogram() {
  if (!plot("histogram")) return; // a few items are seen better in the table
  const { low, high, counts } = state.histogram;
  const width = (high - low) / counts.length;
  const rangeOf = (bin) => [bin, bin + 1].map((edge) => valueAt(low + width * edge, state.unit.ticks ? 2 : 4)).join(" to ");
  const describe = (bin) => {
    const count = state.histogram.counts[bin];
    return `${`${rangeOf(bin)} ${state.unit.sign}`.trim()}: ${wholeNumber.format(count)} ${count === 1 ? "item" : "items"}`;
  };
  bars(
    plot("histogram"), { begin: low, width, heights: counts, unit: state.unit, yLabel: "items" },
    (bin) => showHistogramReadout(bin === null ? null : describe(bin)),
  );
  fillTable("histogram", counts.map((count, bin) => [rangeOf(bin), wholeNumber.format(count)]));
}

function drawUncertainty() {
  if (!plot("uncertainty")) return; // labels without an order have no interval
  const { points, changes } = state.uncertainty;
  const { spread } = state.unit_of_means;
  const format = ([answers, value]) => [wholeNumber.format(answers), twoDecimals.format(value)];
  const describe = (point) => {
    const [answers, value] = format(point);
    return `After ${answers} ${answers === "1" ? "task" : "tasks"}: ${spread.replace(/^\S+/, `$& ${value}`)}`;
  };
  line(
    plot("uncertainty"),
    { x: points.map(([answers]) => answers), y: points.map(([, value]) => value), changes, xLabel: "tasks answered", yLabel: spread },
    (i) => showUncertaintyReadout(i === null ? null : describe(state.uncertainty.points[i])),
  );
  showUncertaintyReadout(null);
  fillTable("uncertainty", points.map(format));
}

/** Draw the number of items by likeliest label. */
function drawClasses() {
  if (!state.classes) return;
  const largestCount = Math.max(1, ...state.classes.map(([, count]) => count));
  document.querySelectorAll('[data-counts="classes"] tr').forEach((row, i) => {
    const count = state.classes[i][1];
    row.querySelector("rect").setAttribute("width", `${(100 * count) / largestCount}%`);
    setText(row.cells[2], wholeNumber.format(count));
    row.hidden = count === 0 && state.classes.length > 13;
  });
}

// The heatmap, for items on a scale

const canvas = byId("heatmap");
const heatmapText = byId("heatmap-readout")?.textContent;
let cells = new Uint8Array();

const showCellReadout = canvas && explore(canvas, byId("heatmap-cross"), (row, column) => {
  const { labels } = state.heatmap;
  setText(byId("heatmap-readout"), row === undefined
    ? heatmapText
    : `${labels[row]} × ${labels[column]}: q = ${twoDecimals.format(cells[row * labels.length + column] / 255)}`);
});

function drawHeatmap() {
  if (!canvas) return;
  const size = state.heatmap.labels.length;
  cells = decoded(state.heatmap.cells);
  paint(canvas, cells, size, size);
  showCellReadout();
}

if (canvas) {
  paintLegend(byId("heatmap-legend"));
  byId("heatmap-png").hidden = false;
  byId("heatmap-png").addEventListener("click", () => {
    const link = document.createElement("a");
    link.download = "match-quality.png";
    link.href = canvas.toDataURL("image/png");
    link.click();
  });
}

/** Draw the posterior of the chosen item. */
export function drawItem() {
  sweep();
  const data = byId("density");
  if (!data) return;
  const item = JSON.parse(data.textContent);
  const { sign, density: densityName } = state.unit;
  const showReadout = readout("density");
  const describe = (i) => `At ${valueAt(item.x[i], 3)}${sign && ` ${sign}`}: ${densityName} ${item.now.density[i].toPrecision(3)}`;
  density(plot("density"), { ...item, unit: state.unit }, (i) => showReadout(i === null ? null : describe(i)));
  localizeTimes(byId("item"));
}
