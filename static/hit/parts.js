// A HIT and its parts: one for each criterion that is asked, or one that is all of it. A design reads a part as if it were
// the whole HIT. The parts stand one below the other, each in an element of its own, or in a grid, where only the names
// of their controls tell them apart.

import { all, inDocument } from "./page.js";
import { keep, say } from "./sending.js";
import * as unjudged from "./unjudged.js";
import { words } from "./words.js";

// Texts have nothing to play. The launch fixes the kind of items, and so this style sheet.
const playback = document.querySelector("link[href*='pictures.css']") ? await import("./playback.js") : null;

// Also loaded if a later HIT is the first one with comments.
const REMARKS = ".remarks, .reason";
let remarks = document.querySelector(REMARKS) ? await import("./remarks.js") : null;

const SHARED = ["whole", "next", "sending", "changed", "problem"];       // what is so of all parts at once

const focused = () => document.activeElement?.closest("[data-part]")?.dataset.part;
const first = (part) => part.missing()[0];
// Those that are not finished, as they come on the page, and then those that are.
const inOrder = ({ parts }) => [
  ...parts.filter(first).sort((one, other) => inDocument(first(one), first(other))), ...parts.filter((part) => !first(part)),
];

export function read(fieldset, design) {
  const hit = { fieldset, form: fieldset.closest("form"), sending: false, changed: false, problem: false };
  hit.whole = hit;
  if (!remarks && hit.form?.querySelector(REMARKS)) import("./remarks.js").then((loaded) => { remarks = loaded; });
  playback?.begin(hit);
  hit.parts = (fieldset.dataset.parts ?? "").split(" ").map((name) => readPart(hit, name, design));
  return Object.assign(hit, {
    entries: () => Object.assign(unjudged.entries(hit), remarks?.entries(hit), playback?.entries(hit), ...hit.parts.map((part) => part.entries())),
    restore(kept) {
      unjudged.restore(hit, kept);
      remarks?.restore(hit, kept);
      playback?.restore(hit, kept);
      for (const part of hit.parts) part.restore(kept);
    },
    fields: () => [...unjudged.said(hit), ...(remarks?.said(hit) ?? []), ...(playback?.fields(hit) ?? []), ...hit.parts.flatMap((part) => part.fields())],
    ready: () => inOrder(hit).every((part) => part.ready()) && (remarks?.ready(hit) ?? true) && (playback?.ready(hit) ?? true),
    draw() { for (const part of hit.parts) part.draw(); },
    busy: () => hit.sending || hit.parts.some(({ gesture }) => gesture),
  });
}

function readPart(hit, name, design) {
  const root = name ? hit.fieldset.querySelector(`.part[data-part="${name}"]`) : null;
  const part = design.read(root ?? hit.fieldset, name);
  Object.assign(part, { name, called: document.getElementById(`${name}name`)?.textContent.trim() ?? "" });
  for (const shared of SHARED) {
    Object.defineProperty(part, shared, { get: () => hit[shared], set: (value) => { hit[shared] = value; } });
  }
  return part;
}

export function begin(hit, design) {
  for (const part of hit.parts) design.begin(part);
  hit.form.addEventListener("input", ({ target }) => {
    if (unjudged.isOne(target)) changed(hit);
    else if (remarks?.isOne(target)) noted(hit, target);
  });
}

function changed(hit) {
  hit.changed = true;
  hit.problem = false;
  hit.draw();
  keep(hit);
}

function noted(hit, field) {
  hit.changed = true;
  hit.problem = false;
  remarks.accept(field);
  hit.draw();
  keep(hit);
}

/** The part that a key is for which is pressed anywhere. */
export const inHand = (hit) =>
  hit.parts.find(({ gesture }) => gesture) ?? hit.parts.find(({ name }) => name === focused()) ?? inOrder(hit)[0];

/** What a part still lacks, in words; the line beside the button says it of the first part that lacks anything. */
export function tell(part, remaining, { asks = "" } = {}) {
  const { whole } = part;
  Object.assign(part, { remaining, asks });
  drawMark(part);
  const open = whole.parts.filter(first);
  const next = open[0] ?? part;
  if (!whole.problem) say(next, next.remaining ?? "");
  const button = whole.form.querySelector(".primary");
  button.setAttribute("aria-disabled", String(open.length > 0 || Boolean(whole.sending)));
  button.textContent = whole.sending ? words("Sending …") : whole.parts.find((one) => one.asks)?.asks ?? button.dataset.send;
}

function drawMark(part) {
  const mark = document.getElementById(`${part.name}left`);
  if (!mark) return;
  mark.textContent = first(part) ? part.remaining : words("✓ done");
  mark.classList.toggle("done", !first(part));
}
