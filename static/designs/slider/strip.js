// The common strip: every scored item as a mark above the place of its score, tied to it by a line.

const MARK_GAP_PX = 28;
const MARK_FOOT_PX = 26;
const NARROWEST = 0.01;        // a line whose transformation has no width is not drawn at all

export function begin(hit) {
  const leads = hit.fieldset.querySelector(".strip .leads");
  for (const row of hit.rows) {
    // Both are moved by transformations, in per cent of the rail as the marks are: so they slide with them.
    row.lead = shape("line", { x1: 0, y1: 0, x2: "1%", y2: 1 });
    row.foot = shape("circle", { cx: 0, cy: 0, r: 4 });
    leads.append(row.lead, row.foot);
  }
}

function shape(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

export function draw(hit) {
  const rail = hit.fieldset.querySelector(".strip > .rail");
  const rows = hit.rows.filter((row) => row.score !== null)
    .sort((a, b) => a.score - b.score || a.letter.localeCompare(b.letter));
  const gap = Math.min(100 * MARK_GAP_PX / (rail.clientWidth || 600), rows.length > 1 ? 100 / (rows.length - 1) : 100);
  const places = spread(rows.map((row) => row.score), gap);
  const floor = rail.clientHeight - parseFloat(getComputedStyle(rail, "::before").bottom) - 1;
  for (const row of hit.rows) {
    for (const part of [row.mark, row.lead, row.foot]) part.toggleAttribute("data-scored", row.score !== null);
  }
  rows.forEach((row, index) => put(row, places[index], floor));
}

function put(row, place, floor) {
  const width = row.score - place;
  row.mark.style.setProperty("--at", place);
  row.lead.style.transform =
    `translate(${place}%, ${MARK_FOOT_PX}px) scale(${Math.abs(width) < NARROWEST ? NARROWEST : width}, ${floor - MARK_FOOT_PX})`;
  row.foot.style.transform = `translate(${row.score}%, ${floor}px)`;
}

// Places for marks at ascending `scores`, at least `gap` apart, within 0..100 and moved as little as possible:
// marks that would touch form a group around their mean (pool adjacent violators).
function spread(scores, gap) {
  const groups = [];
  scores.forEach((score, index) => {
    groups.push({ sum: score - index * gap, size: 1 });
    while (groups.length > 1 && mean(groups.at(-2)) > mean(groups.at(-1))) {
      const last = groups.pop();
      groups.at(-1).sum += last.sum;
      groups.at(-1).size += last.size;
    }
  });
  const highest = 100 - (scores.length - 1) * gap;
  const starts = groups.flatMap((group) => Array(group.size).fill(Math.min(highest, Math.max(0, mean(group)))));
  return starts.map((begins, index) => begins + index * gap);
}

const mean = (group) => group.sum / group.size;
