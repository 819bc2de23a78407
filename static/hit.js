// The annotator's page. The server sends a plain form, of which its design's script may make more; this keeps drafts,
// sends the answer until the server has it, and puts the next HIT in its place. Without scripts the form still works.
//
// A design is `read(root, name)`, which makes a HIT, or the part of one, of the controls in `root` whose names begin with
// `name`; `begin(hit)`, `press(hit, event)` for a key that is pressed anywhere, and `resize(hit)`. Its script calls `run`
// with it. What it reads has `entries()`, what was entered so far, by item or control; `restore(entries)`; `fields()`, what is
// sent; `missing()`, the controls without a value; `ready()`, false after saying what is missing; and `draw()`.

import * as early from "./hit/early.js";
import { showControl } from "./hit/keys.js";
import * as media from "./hit/media.js";
import { announce, hush } from "./hit/page.js";
import * as parts from "./hit/parts.js";
import * as rest from "./hit/rest.js";
import * as sending from "./hit/sending.js";
import * as texts from "./hit/texts.js";
import * as trays from "./hit/trays.js";
import * as visit from "./hit/visit.js";
import { words } from "./hit/words.js";

// Texts have no pictures: see parts.js.
const zoom = document.querySelector("link[href*='pictures.css']") ? await import("./hit/zoom.js") : null;

let hit = null;                // the HIT on the page, or null
let design;                    // what is made of it
let waiting;                   // the timer of a page without one

function start() {
  clearTimeout(waiting);
  hit = null;
  document.dispatchEvent(new Event("easel:replaced"));
  const fieldset = document.querySelector(".hit");
  if (fieldset) begin(parts.read(fieldset, design));
  else lookLater(document.querySelector(".no-hit"));
  visit.remember();
  rest.begin();
}

function begin(shown) {
  shown.fieldset.classList.add("ready");
  if (!shown.form) return;       // a preview is only looked at
  hit = shown;
  hit.next = swap;
  hit.form.noValidate = true;
  hit.form.elements.viewport.value = `${innerWidth}x${innerHeight}`;
  sending.restore(hit);
  texts.begin(hit);
  zoom?.begin(hit);
  media.begin(hit, () => { if (hit === shown) resize(); });
  parts.begin(hit, design);
  trays.begin(hit);
  hit.form.addEventListener("submit", (event) => sending.submit(shown, event));
  hit.form.querySelector(".try-now").addEventListener("click", () => sending.send(shown));
}

// ---- The next page, from the reply ----

function swap(html) {
  hush();
  document.getElementById("main").innerHTML = html;
  early.close();
  start();
  renewAddress();
  scrollTo(0, 0);
  const page = document.querySelector("[data-announce]");
  document.getElementById("question")?.focus({ preventScroll: true });
  document.title = document.querySelector("h1").textContent;
  if (page) announce(`${page.dataset.announce} ${document.querySelector(".progress")?.textContent ?? ""}`);
}

// A visitor's address carries their token; a newer one lives longer, should they reload or come back.
function renewAddress() {
  const url = new URL(location.href);
  if (!hit || !url.searchParams.has("t")) return;
  url.searchParams.set("t", hit.form.elements.token.value);
  history.replaceState(null, "", url);
  visit.remember();
}

// Where there is no line for it, below the button.
function tellOfEarlyPress() {
  const message = words("This page had only just appeared, so your press was ignored. Please press again.");
  announce(message);
  if (hit) return sending.say(hit, message);
  const line = Object.assign(document.createElement("p"), { className: "aside", textContent: message });
  document.querySelector("#main form")?.append(line);
}

function lookLater(section) {
  if (!section?.dataset.retrySeconds || document.querySelector(".preview-bar")) return;
  section.querySelector("[data-retry]").addEventListener("click", (event) => { event.preventDefault(); look(section); });
  waiting = setTimeout(() => look(section), 1000 * section.dataset.retrySeconds);
}

async function look(section) {
  clearTimeout(waiting);
  const reply = await sending.ask("GET");
  if (!section.isConnected) return;
  if (reply?.ok && !reply.text.includes(`data-reason="${section.dataset.reason}"`)) return swap(reply.text);
  announce(reply?.ok ? words("Nothing yet.") : words("Not connected. This page looks again by itself."));
  waiting = setTimeout(() => look(section), 1000 * section.dataset.retrySeconds);
}

function resize() {
  texts.fit(hit);
  trays.fit(hit);
  hit.parts.forEach(design.resize);
}

export function run(chosen) {
  const { classList } = document.documentElement;
  classList.add("scripted");     // also when the script that does so before the first paint did not arrive
  design = chosen;
  early.begin(tellOfEarlyPress);
  document.addEventListener("keydown", (event) => {
    if (!hit) return;
    showControl(event);
    design.press(parts.inHand(hit), event);
  });
  document.addEventListener("visibilitychange", () => { if (hit && document.hidden) sending.saveDraft(hit, { leaving: true }); });
  addEventListener("pagehide", () => { if (hit) sending.saveDraft(hit, { leaving: true }); });
  addEventListener("online", () => { if (hit) sending.send(hit); });
  addEventListener("resize", () => { if (hit) resize(); });
  addEventListener("pageshow", visit.offer);       // also when Back shows the page as it was
  visit.offer();
  start();
  classList.add("started");
}
