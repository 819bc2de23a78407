// The annotator's page. The server sends a plain form of numbers; this turns it into sliders with a common strip, keeps
// drafts, and sends the answer until the server has it. Without this file the form still works.
"use strict";

(() => {
  const LETTERS = "abcdefghij";
  const COUNTS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
  const ORDINALS = ["", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
  const PLACES = ["", "1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th"];
  const FIRST_SCORE = 50;        // where a press of an arrow key or a step button places an item that had no score
  const DRAFT_DELAY_MS = 600;
  const ANNOUNCE_DELAY_MS = 700;
  const SEND_TIMEOUT_MS = 20_000;
  const LONGEST_RETRY_MS = 15_000;
  const RETURN_DELAY_MS = 3_000;
  const DRAG_STARTS_PX = 5;      // less is a tap
  const SNAP_PX = 4;             // on the strip, this close to another mark means the same score
  const MARK_GAP_PX = 28;

  document.documentElement.classList.add("scripted");

  let hit = null;                // the HIT on the page, or null
  const clamp = (value) => Math.min(100, Math.max(0, value));
  const all = (root, selector) => [...root.querySelectorAll(selector)];
  const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  function later(delay) {
    // A debounced call: only the last of several within `delay` ms happens.
    let timer;
    return (action) => { clearTimeout(timer); timer = setTimeout(action, delay); };
  }

  const announceSoon = later(ANNOUNCE_DELAY_MS);
  const saveSoon = later(DRAFT_DELAY_MS);

  function announce(words) {
    announceSoon(() => { document.getElementById("announcer").textContent = words; });
  }

  // ---- Starting: from the plain form to rows we know ----

  function start() {
    clearTimeout(start.timer);
    hit = null;
    const fieldset = document.querySelector(".hit");
    if (fieldset) begin(fieldset);
    else waitOrReturn(document.querySelector(".no-hit"));
  }

  function begin(fieldset) {
    const form = fieldset.closest("form");
    const rows = all(fieldset, ".row").map((element) => readRow(fieldset, element));
    fieldset.classList.add("ready");
    const state = { fieldset, form, rows, shownAt: performance.now(), sending: false, changed: false, order: "" };
    if (!form) return;           // a preview is only looked at
    hit = state;
    form.noValidate = true;
    form.elements.viewport.value = `${innerWidth}x${innerHeight}`;
    restore();
    for (const row of rows) offerWholeText(row);
    fieldset.addEventListener("pointerdown", press);
    fieldset.addEventListener("keydown", pressKey);
    fieldset.addEventListener("input", takeNativeInput);
    fieldset.addEventListener("change", chooseTie);
    fieldset.addEventListener("click", click);
    form.addEventListener("submit", submit);
    draw();
  }

  function readRow(fieldset, element) {
    const input = element.querySelector("input");
    const row = {
      element, input,
      item: element.dataset.item,
      letter: element.dataset.letter,
      name: element.querySelector("label").textContent.trim(),
      score: input.value === "" ? null : clamp(Math.round(Number(input.value))),
      firstTouchMs: element.dataset.firstTouchMs ?? "",
      changes: Number(element.dataset.changes ?? 0),
      kind: element.dataset.inputKind ?? "",
      thumb: element.querySelector(".thumb"),
      number: element.querySelector(".number"),
      rank: element.querySelector(".rank"),
      same: element.querySelector(".same"),
      rail: element.querySelector(".rail"),
      mark: fieldset.querySelector(`.mark[data-item="${element.dataset.item}"]`),
      chip: fieldset.querySelector(`.chip[data-item="${element.dataset.item}"]`),
    };
    input.type = "range";
    return row;
  }

  function offerWholeText(row) {
    const text = row.element.querySelector(".text");
    const button = row.element.querySelector(".show-all");
    button.hidden = text.scrollHeight <= text.clientHeight + 1;
    button.addEventListener("click", () => {
      text.classList.add("whole");
      button.hidden = true;
      row.input.focus({ preventScroll: true });
    });
  }

  // ---- Scores: the one place where a score is set ----

  function place(row, score, kind, { counts = true } = {}) {
    if (hit.sending) return draw();
    row.score = score;
    row.kind = kind;
    if (row.firstTouchMs === "") row.firstTouchMs = Math.round(performance.now() - hit.shownAt);
    if (counts) row.changes += 1;
    hit.changed = true;
    hit.equalAsked = false;
    hit.problem = false;
    draw();
    if (counts) keep();
  }

  const scored = () => hit.rows.filter((row) => row.score !== null);
  const missing = () => hit.rows.filter((row) => row.score === null);
  const isTied = (row) => scored().some((other) => other !== row && other.score === row.score);
  const rankOf = (row) => 1 + scored().filter((other) => other.score > row.score).length;
  const byScore = () => [...hit.rows].sort((a, b) => (b.score ?? -1) - (a.score ?? -1));

  function spoken(row) {
    if (row.score === null) return "not scored yet";
    const company = missing().length ? `${COUNTS[scored().length]} so far` : COUNTS[hit.rows.length];
    return `${row.score} of 100, ${isTied(row) ? "tied " : ""}${ORDINALS[rankOf(row)]} of ${company}`;
  }

  // ---- Drawing: everything that is seen follows from the scores ----

  function draw() {
    for (const row of hit.rows) drawRow(row);
    drawStrip();
    drawStatus();
    announceOrder();
    hit.fieldset.querySelector(".sort").disabled = scored().length < 2;
  }

  function drawRow(row) {
    const placed = row.score !== null;
    for (const element of [row.element, row.chip]) element.toggleAttribute("data-scored", placed);
    row.input.value = placed ? row.score : FIRST_SCORE;
    row.input.setAttribute("aria-valuetext", spoken(row));
    row.thumb.style.setProperty("--at", row.score ?? FIRST_SCORE);
    if (row.number) row.number.textContent = placed ? row.score : "";
    row.rank.textContent = placed ? (isTied(row) ? "=" : "") + PLACES[rankOf(row)] : "";
    offerTies(row);
  }

  function offerTies(row) {
    const others = scored().filter((other) => other !== row);
    row.same.disabled = others.length === 0;
    const options = others.map((other) => new Option(`same as ${other.letter}`, other.item));
    row.same.replaceChildren(row.same.options[0], ...options);
    row.same.selectedIndex = 0;
  }

  function drawStrip() {
    const rail = hit.fieldset.querySelector(".strip > .rail");
    const rows = scored().sort((a, b) => a.score - b.score || a.letter.localeCompare(b.letter));
    const gap = Math.min(100 * MARK_GAP_PX / (rail.clientWidth || 600), rows.length > 1 ? 100 / (rows.length - 1) : 100);
    const places = spread(rows.map((row) => row.score), gap);
    rows.forEach((row, index) => row.mark.style.setProperty("--at", places[index]));
    for (const row of hit.rows) row.mark.toggleAttribute("data-scored", row.score !== null);
    rail.querySelector("svg").replaceChildren(...rows.flatMap((row, index) => lead(places[index], row.score, rail.clientHeight)));
  }

  function lead(from, to, height) {
    const foot = height - parseFloat(getComputedStyle(hit.fieldset.querySelector(".strip > .rail"), "::before").bottom) - 1;
    return [
      shape("line", { x1: `${from}%`, y1: 26, x2: `${to}%`, y2: foot }),
      shape("circle", { cx: `${to}%`, cy: foot, r: 4 }),
    ];
  }

  function shape(name, attributes) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
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

  function drawStatus() {
    const left = missing().length;
    if (!hit.problem) say(left ? `${left} left` : "");
    const button = hit.form.querySelector(".primary");
    button.setAttribute("aria-disabled", String(left > 0 || hit.sending));
    button.textContent = hit.sending ? "Sending …" : hit.equalAsked ? "Submit all equal" : button.dataset.send;
  }

  function say(words, { problem = false } = {}) {
    const status = hit.fieldset.querySelector(".status");
    status.classList.toggle("problem", problem);
    status.querySelector(".message").textContent = words;
    hit.problem = problem;
    if (problem) announce(words);
  }

  function announceOrder() {
    const rows = byScore().filter((row) => row.score !== null);
    const order = rows.map((row, index) => (index && row.score === rows[index - 1].score ? "same as " : "") + row.name.slice(0, 30)).join(", ");
    if (hit.changed && order !== hit.order && rows.length > 1) announce(`Order, highest first: ${order}.`);
    hit.order = order;
  }

  // ---- Pointers: press or drag on a row's rail, or drag a mark on the strip ----

  function press(event) {
    const surface = event.target.closest(".track, .mark, .chip");
    if (!surface || event.button !== 0 || hit.sending || hit.gesture) return;
    const onStrip = !surface.matches(".track");
    const row = onStrip ? rowOf(surface.dataset.item) : hit.rows.find((it) => it.element.contains(surface));
    const rail = onStrip ? hit.fieldset.querySelector(".strip > .rail") : row.rail;
    const kind = onStrip ? "strip" : event.pointerType || "mouse";
    const gesture = { row, rail, kind, onStrip, id: event.pointerId, x: event.clientX, y: event.clientY, moved: false, before: snapshot(row) };
    gesture.grip = grip(gesture);
    hit.gesture = gesture;
    if (event.pointerType !== "touch") event.preventDefault();   // no text selection; a finger must stay free to scroll
    row.input.focus({ preventScroll: true });
    hit.fieldset.setPointerCapture(event.pointerId);
    for (const [name, handler] of HANDLERS) hit.fieldset.addEventListener(name, handler);
    if (!onStrip && event.pointerType !== "touch") slide(event);
  }

  const rowOf = (item) => hit.rows.find((row) => row.item === item);
  const snapshot = ({ score, firstTouchMs, changes, kind }) => ({ score, firstTouchMs, changes, kind });

  // A knob taken beside its centre does not jump: the distance is kept while it is dragged.
  function grip({ row, rail, x, onStrip }) {
    if (row.score === null) return 0;
    if (onStrip) return x - positionOf(row.score, rail);
    const distance = x - positionOf(row.score, rail);
    return Math.abs(distance) <= row.thumb.offsetWidth / 2 ? distance : 0;
  }

  function positionOf(score, rail) {
    const { left, width } = rail.getBoundingClientRect();
    return left + width * score / 100;
  }

  function scoreAt(x, { rail, row, onStrip }) {
    const { left, width } = rail.getBoundingClientRect();
    const near = onStrip && scored().find((other) => other !== row && Math.abs(positionOf(other.score, rail) - x) <= SNAP_PX);
    return near ? near.score : clamp(Math.round(100 * (x - left) / width));
  }

  function slide(event) {
    const { row, kind, grip: offset } = hit.gesture;
    const score = scoreAt(event.clientX - offset, hit.gesture);
    if (score !== row.score) place(row, score, kind, { counts: false });
  }

  function move(event) {
    const gesture = hit?.gesture;
    if (event.pointerId !== gesture?.id) return;
    if (scrolls(event, gesture)) return cancel(event);
    gesture.moved ||= Math.abs(event.clientX - gesture.x) >= DRAG_STARTS_PX;
    if (gesture.moved) {
      mark(gesture, true);
      slide(event);
    }
  }

  // A finger that goes up or down a rail means to scroll, whether or not the browser says so with pointercancel.
  function scrolls(event, { x, y, moved, onStrip }) {
    const [across, along] = [Math.abs(event.clientY - y), Math.abs(event.clientX - x)];
    return event.pointerType === "touch" && !onStrip && !moved && across >= DRAG_STARTS_PX && across > along;
  }

  function release(event) {
    const gesture = hit?.gesture;
    if (event.pointerId !== gesture?.id) return;
    if (!gesture.moved && !gesture.onStrip) slide(event);        // a tap places the item where it fell
    if (gesture.onStrip && !gesture.moved) gesture.row.element.scrollIntoView({ block: "nearest" });
    end(gesture);
    if (gesture.row.score !== gesture.before.score) place(gesture.row, gesture.row.score, gesture.kind);
  }

  // The browser took the gesture for scrolling, or Escape was pressed: as if nothing had happened.
  function cancel(event) {
    const gesture = hit?.gesture;
    if (!gesture || ("pointerId" in event && event.pointerId !== gesture.id)) return;
    end(gesture);
    Object.assign(gesture.row, gesture.before);
    draw();
  }

  function end(gesture) {
    mark(gesture, false);
    hit.gesture = null;
    for (const [name, handler] of HANDLERS) hit.fieldset.removeEventListener(name, handler);
  }

  function mark({ row, onStrip }, active) {
    for (const element of [row.mark, row.chip]) element.classList.toggle("active", active && onStrip);
  }

  const HANDLERS = [["pointermove", move], ["pointerup", release], ["pointercancel", cancel], ["lostpointercapture", cancel]];

  // ---- Keys ----

  const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };
  const ENDS = { Home: 0, End: 100 };

  function pressKey(event) {
    const row = hit.rows.find(({ input }) => input === event.target);
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const score = scoreByKey(row, event.key);
    if (score === undefined) return;
    event.preventDefault();
    if (score !== row.score) place(row, score, "keyboard");
  }

  function scoreByKey(row, key) {
    if (key in ENDS) return ENDS[key];
    if (key in STEPS) return stepped(row, STEPS[key]);
    const other = key.length === 1 && LETTERS.includes(key.toLowerCase()) && hit.rows.find(({ letter }) => letter === key.toLowerCase());
    return other && other !== row && other.score !== null ? other.score : undefined;
  }

  const stepped = (row, by) => (row.score === null ? FIRST_SCORE : clamp(row.score + by));

  // Keys that work wherever the focus is.
  function pressAnywhere(event) {
    if (!hit || event.target.matches("select")) return;
    if (event.key === "Escape") cancel(event);
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "?") toggleKeys();
    if (/^[0-9]$/.test(event.key)) goTo(rowsAsShown()[(Number(event.key) + 9) % 10]);
  }

  const rowsAsShown = () => all(hit.fieldset, ".row").map((element) => rowOf(element.dataset.item));

  function goTo(row) {
    if (!row) return;
    row.input.focus({ preventScroll: true });
    row.element.scrollIntoView({ block: "nearest" });
  }

  function toggleKeys() {
    const keys = hit.fieldset.querySelector(".keys");
    keys.open = !keys.open;
    announce(keys.open ? keys.querySelector("dl").textContent.replace(/\s+/g, " ") : "Keys hidden.");
  }

  // Assistive technology and scripts set the slider's value without a key or a pointer.
  function takeNativeInput(event) {
    const row = hit.rows.find(({ input }) => input === event.target);
    if (row) place(row, Number(row.input.value), "keyboard");
  }

  // ---- Buttons ----

  function chooseTie(event) {
    if (!event.target.matches(".same") || !event.target.value) return;
    const row = hit.rows.find(({ same }) => same === event.target);
    place(row, rowOf(event.target.value).score, "button");
  }

  function click(event) {
    const button = event.target.closest("button");
    if (button?.dataset.step) {
      const row = hit.rows.find(({ element }) => element.contains(button));
      const score = stepped(row, Number(button.dataset.step));
      if (score !== row.score) place(row, score, "button");
    }
    if (button?.matches(".sort")) sortRows();
    if (button?.matches(".try-now")) send();
  }

  function sortRows() {
    const focused = document.activeElement;
    const tops = new Map(hit.rows.map((row) => [row, row.element.offsetTop]));
    hit.fieldset.querySelector(".rows").append(...byScore().map((row) => row.element));
    focused?.focus({ preventScroll: true });
    announce(`Rows sorted: ${rowsAsShown().map((row) => row.name.slice(0, 30)).join(", ")}.`);
    if (calm()) return;
    for (const [row, top] of tops) {
      const frames = [{ transform: `translateY(${top - row.element.offsetTop}px)` }, { transform: "none" }];
      row.element.animate(frames, { duration: 150, easing: "ease-out" });
    }
  }

  // ---- Drafts: on the server so that any reload has them, in this tab for when the connection is gone ----

  const entries = () => Object.fromEntries(scored().map((row) => [row.item, {
    score: row.score, first_touch_ms: Number(row.firstTouchMs), changes: row.changes, input_kind: row.kind,
  }]));
  const storageKey = (id) => `easel:${id}`;

  function stored(action) {
    // Storage is blocked in some frames and private windows; drafts on the server remain.
    try { return action(sessionStorage); } catch { return null; }
  }

  function keep() {
    const id = hit.form.dataset.hit;
    stored((storage) => storage.setItem(storageKey(id), JSON.stringify(entries())));
    saveSoon(() => { if (hit?.form.dataset.hit === id) saveDraft(); });
  }

  function saveDraft({ leaving = false } = {}) {
    if (!hit?.changed || hit.sending) return;
    hit.changed = false;
    const body = JSON.stringify({ token: hit.form.elements.token.value, hit: Number(hit.form.dataset.hit), entries: entries() });
    const headers = { "Content-Type": "application/json", Accept: "application/json" };
    const current = hit;
    fetch(address(), { method: "PUT", headers, body, keepalive: leaving }).catch(() => { current.changed = true; });
  }

  function restore() {
    const kept = JSON.parse(stored((storage) => storage.getItem(storageKey(hit.form.dataset.hit))) ?? "{}");
    for (const [item, entry] of Object.entries(kept)) {
      const row = rowOf(item);
      if (row) Object.assign(row, { score: entry.score, firstTouchMs: entry.first_touch_ms, changes: entry.changes, kind: entry.input_kind });
    }
  }

  // ---- Sending: until the server has the answer; it counts an answer once however often it arrives ----

  const address = () => location.href.split("#")[0];

  function submit(event) {
    event.preventDefault();
    if (!hit || hit.sending || hit.gesture) return;
    const left = rowsAsShown().filter((row) => row.score === null);
    if (left.length) return askFor(left);
    if (hit.rows.every((row) => row.score === hit.rows[0].score) && !hit.equalAsked) return askWhetherEqual();
    hit.sending = true;
    hit.answer = answer();
    hit.tries = 0;
    hit.form.setAttribute("aria-busy", "true");
    say("");
    draw();
    send();
  }

  function askFor(left) {
    const names = left.map(({ letter }) => letter).join(", ");
    goTo(left[0]);
    say(`${left.length} left`);
    announce(`Not scored yet: ${names}.`);
  }

  function askWhetherEqual() {
    hit.equalAsked = true;
    drawStatus();
    say(`All ${COUNTS[hit.rows.length]} have the same score. If you mean it, submit again.`);
    announce(`All ${COUNTS[hit.rows.length]} have the same score. If you mean it, submit again.`);
  }

  function answer() {
    const form = new URLSearchParams();
    for (const name of ["token", "hit", "viewport"]) form.set(name, hit.form.elements[name].value);
    for (const row of hit.rows) {
      form.set(`score-${row.item}`, row.score);
      form.set(`first_touch_ms-${row.item}`, row.firstTouchMs);
      form.set(`changes-${row.item}`, row.changes);
      form.set(`input_kind-${row.item}`, row.kind);
    }
    return form;
  }

  const asScript = { "X-Easel": "fetch", Accept: "application/json" };

  async function send() {
    if (!hit?.sending || hit.inFlight) return;
    clearTimeout(hit.retryTimer);
    const current = hit;
    current.inFlight = true;
    const reply = await ask("POST", current.answer);
    current.inFlight = false;
    if (!reply || reply.status >= 500 || reply.status === 429) return retryLater(current, reply);
    if (!reply.ok) return refused(current, reply.error);
    stored((storage) => storage.removeItem(storageKey(current.form.dataset.hit)));
    swap(reply.text);
  }

  // What the server says: {status, ok, text, error}, or null when it could not be reached or was cut off.
  async function ask(method, body) {
    try {
      const response = await fetch(address(), { method, body, headers: asScript, signal: AbortSignal.timeout(SEND_TIMEOUT_MS) });
      const text = await response.text();
      const error = response.ok ? null : message(text);
      return { status: response.status, ok: response.ok, text, error };
    } catch {
      return null;
    }
  }

  function message(text) {
    try { return JSON.parse(text).error.message; } catch { return "The server did not understand this answer."; }
  }

  function retryLater(current, reply) {
    const wait = Math.min(LONGEST_RETRY_MS, 1000 * 2 ** current.tries++);
    const cause = reply ? "The server is busy." : "Not connected.";
    say(`${cause} Your answer is kept and will be sent.`, { problem: true });
    current.fieldset.querySelector(".try-now").hidden = false;
    current.retryTimer = setTimeout(send, wait);
  }

  function refused(current, words) {
    current.sending = false;
    current.form.removeAttribute("aria-busy");
    current.fieldset.querySelector(".try-now").hidden = true;
    draw();
    say(words, { problem: true });
  }

  // ---- The next page, from the reply ----

  function swap(html) {
    document.getElementById("main").innerHTML = html;
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
  }

  function waitOrReturn(section) {
    const form = section?.querySelector("form.complete");
    const link = section?.querySelector("a[data-complete]");
    if (form) form.submit();
    if (link) start.timer = setTimeout(() => location.assign(link.href), RETURN_DELAY_MS);
    if (!section?.dataset.retrySeconds) return;
    section.querySelector("[data-retry]").addEventListener("click", (event) => { event.preventDefault(); look(section); });
    start.timer = setTimeout(() => look(section), 1000 * section.dataset.retrySeconds);
  }

  async function look(section) {
    clearTimeout(start.timer);
    const reply = await ask("GET");
    if (!section.isConnected) return;
    if (reply?.ok && !reply.text.includes(`data-reason="${section.dataset.reason}"`)) return swap(reply.text);
    announce(reply?.ok ? "Nothing yet." : "Not connected. This page looks again by itself.");
    start.timer = setTimeout(() => look(section), 1000 * section.dataset.retrySeconds);
  }

  document.addEventListener("DOMContentLoaded", start);
  document.addEventListener("keydown", pressAnywhere);
  addEventListener("pagehide", () => saveDraft({ leaving: true }));
  document.addEventListener("visibilitychange", () => { if (document.hidden) saveDraft({ leaving: true }); });
  addEventListener("online", send);
  addEventListener("resize", () => { if (hit) drawStrip(); });
})();
