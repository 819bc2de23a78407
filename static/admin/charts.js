// The page's charts on uPlot: bars over a number or a time, a curve, and the densities of a posterior. Colours come from the style
// sheet, so both themes are its business.

const HEIGHT = 160;
const FONT = "12px system-ui, sans-serif";
const drawn = new Map(); // element: { plot, observer, chart }, where `chart` is what is shown now

const probe = document.body.appendChild(document.createElement("span"));
probe.hidden = true;

/** A custom property as a colour that a canvas understands, in the theme of now. */
function colour(name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

const faint = (name) => colour(name).replace("rgb(", "rgba(").replace(")", ", 0.16)");

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const { plot } of drawn.values()) plot.redraw();
});

function axis(label, more) {
  return {
    label, labelSize: 18, labelGap: 0, labelFont: FONT, font: FONT, gap: 4,
    stroke: () => colour("--muted"),
    grid: { stroke: () => colour("--hairline"), width: 1 },
    ticks: { show: false },
    ...more,
  };
}

const lying = (label, more) => axis(label, { size: 24, grid: { show: false }, ...more });
const upright = (label, more) => axis(label, { size: room, space: 36, ...more });

/** An axis of places of a unit, 0 to 100, with the numbers that stand there. */
function placed({ axis: label, ticks }) {
  if (!ticks) return lying(label);
  const words = new Map(ticks);
  const inside = (low, high) => [...words.keys()].filter((place) => place >= low && place <= high);
  return lying(label, { splits: (_plot, _axis, low, high) => inside(low, high), values: (_plot, splits) => splits.map((place) => words.get(place)) });
}

const ruler = document.createElement("canvas").getContext("2d");
ruler.font = FONT;

/** As wide as the widest of an upright axis's numbers, so that its title never lies on them. */
const room = (_plot, values) => Math.ceil(Math.max(16, ...(values ?? []).map((words) => ruler.measureText(words).width))) + 8;

// The last number of a lying axis is centred on the chart's end: half of it needs room beside the chart.
const PADDING_FOR_TIMES = [8, 30, 0, 0];
const PADDING_FOR_NUMBERS = [8, 16, 0, 0];

/** Make a chart, or give the one that is there new data. `describe(index)` is told what the pointer is over, or null. */
function show(element, chart, data, describe, options) {
  const known = drawn.get(element);
  if (known) {
    known.chart = chart;
    known.plot.setData(data);
    return;
  }
  const entry = { chart };
  drawn.set(element, entry);
  entry.plot = new uPlot({
    width: Math.max(240, element.clientWidth), height: HEIGHT, padding: PADDING_FOR_NUMBERS,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    ...options(() => entry.chart),
    hooks: { setCursor: [(plot) => describe(plot.cursor.idx ?? null)], ...options(() => entry.chart).hooks },
  }, data, element);
  entry.observer = new ResizeObserver(() => {
    if (element.clientWidth > 0) entry.plot.setSize({ width: element.clientWidth, height: HEIGHT });
  });
  entry.observer.observe(element);
}

/** Forget the charts whose place has left the page. */
export function sweep() {
  for (const [element, { plot, observer }] of drawn) {
    if (element.isConnected) continue;
    observer.disconnect();
    plot.destroy();
    drawn.delete(element);
  }
}

/**
 * Bars of equal width side by side. `chart`: `begin` where the first starts and `width` of each, in the unit of the x axis
 * (seconds since 1970 when `time`), `heights`, `unit` or `xLabel`, `yLabel`, and `filling` when the last one is not complete yet.
 */
export function bars(element, chart, describe) {
  const starts = chart.heights.map((_, i) => chart.begin + i * chart.width);
  show(element, chart, [starts, chart.heights], describe, (now) => ({
    padding: chart.time ? PADDING_FOR_TIMES : PADDING_FOR_NUMBERS,
    series: [{}, {
      width: 0, points: { show: false }, stroke: () => colour("--accent"), fill: () => colour("--accent"),
      paths: uPlot.paths.bars({ size: [0.88, Infinity], align: 1, disp: { fill: { unit: 3, values: () => fills(now()) } } }),
    }],
    axes: [chart.unit ? placed(chart.unit) : lying(chart.xLabel, { space: 64, values: clock, incrs: MINUTES }), upright(chart.yLabel, { incrs: WHOLE })],
    scales: {
      x: { time: Boolean(chart.time), range: () => [now().begin, now().begin + now().heights.length * now().width] },
      y: { range: (_plot, _least, most) => [0, Math.max(1, most * 1.05)] },
    },
  }));
}

const WHOLE = [1, 2, 5].flatMap((digit) => [0, 1, 2, 3, 4, 5].map((power) => digit * 10 ** power)).sort((a, b) => a - b);
const MINUTES = [1, 5, 15, 60, 120, 180, 240, 360].map((minutes) => minutes * 60);
const fills = ({ heights, filling }) =>
  heights.map((_, i) => (filling && i === heights.length - 1 ? faint("--accent") : colour("--accent")));

const hour = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const clock = (_plot, splits) => splits.map((seconds) => hour.format(seconds * 1000));

/** A curve from 0 on. `chart`: `x` and `y`, `xLabel`, `yLabel`, and `changes`: where on x something was changed. */
export function line(element, chart, describe) {
  show(element, chart, [chart.x, chart.y], describe, (now) => ({
    padding: PADDING_FOR_TIMES,
    series: [{}, { width: 1.5, points: { show: false }, stroke: () => colour("--accent") }],
    axes: [lying(chart.xLabel, { incrs: WHOLE, space: 56 }), upright(chart.yLabel)],
    scales: {
      x: { time: false, range: () => [0, Math.max(1, now().x.at(-1) ?? 1)] },
      y: { range: (_plot, _least, most) => [0, most * 1.05] },
    },
    hooks: { drawClear: [(plot) => mark(plot, now())] },
  }));
}

/** A thin line with a flag at each change. */
function mark(plot, { x, changes = [] }) {
  const { top, height } = plot.bbox;
  const flag = 5 * devicePixelRatio;
  plot.ctx.fillStyle = colour("--warning");
  for (const answers of changes) {
    const at = plot.valToPos(Math.min(answers, x.at(-1) ?? answers), "x", true);
    plot.ctx.fillRect(at - devicePixelRatio / 2, top, devicePixelRatio, height);
    plot.ctx.fillRect(at, top, flag, flag);
  }
}

/**
 * A posterior's curve, and with dashes those before it. `chart`: `x` in places of its unit, `now` with its `density`, `low`, `high` and
 * `score`, `earlier` likewise, each with the number of its `judgments`, and `dashes` by that number; `unit`: its words.
 */
export function density(element, chart, describe) {
  const { now, earlier, dashes } = chart;
  const highest = Math.max(...[now, ...earlier].flatMap((curve) => curve.density));
  show(element, chart, [chart.x, ...earlier.map((curve) => curve.density), now.density], describe, () => ({
    series: [
      {},
      ...earlier.map((curve) => ({ width: 1.25, dash: dashes[curve.judgments], points: { show: false }, stroke: () => colour("--muted") })),
      { width: 1.5, points: { show: false }, stroke: () => colour("--accent") },
    ],
    axes: [placed(chart.unit), upright(chart.unit.density)],
    scales: {
      x: { time: false, range: () => [Math.min(0, chart.x[0]), Math.max(100, chart.x.at(-1))] },
      y: { range: () => [0, highest * 1.05] },
    },
    hooks: { drawClear: [(plot) => shade(plot, now)] },
  }));
}

/** The interval as a shade under the curve, the score as a line. */
function shade(plot, { low, high, score }) {
  const at = (value) => plot.valToPos(value, "x", true);
  const { top, height } = plot.bbox;
  plot.ctx.fillStyle = faint("--accent");
  plot.ctx.fillRect(at(low), top, at(high) - at(low), height);
  plot.ctx.fillStyle = colour("--accent");
  plot.ctx.fillRect(at(score) - devicePixelRatio / 2, top, devicePixelRatio, height);
}
