// Drafts and answers: on the server so that any reload has them, in this tab for when the connection is gone. An answer is
// sent until the server has it; it counts once however often it arrives.
//
// A HIT is as `parts` reads it, with `next(html)`; where a part will do, it is for the HIT that it is of.

import { announce, later, stored } from "./page.js";
import { words } from "./words.js";

const DRAFT_DELAY_MS = 600;
const SEND_TIMEOUT_MS = 20_000;
const LONGEST_RETRY_MS = 15_000;

const saveSoon = later(DRAFT_DELAY_MS);
const storageKey = ({ form }) => `easel:draft:${form.dataset.hit}`;
const earlierKey = ({ form }) => `easel:${form.dataset.hit}`;      // of drafts that name items by number
const address = () => location.href.split("#")[0];
const asScript = { "X-Easel": "fetch", Accept: "application/json", "Accept-Language": document.documentElement.lang };

// What the line beside the button says. A warning passes by itself, an error does not.
export function say(hit, message, kind = "") {
  const status = hit.form.querySelector(".finish .status");
  status.classList.toggle("problem", kind !== "");
  status.classList.toggle("warning", kind === "warning");
  status.querySelector(".message").textContent = message && hit.called ? `${hit.called}: ${message}` : message;
  hit.problem = kind !== "";
  if (hit.problem) announce(status.querySelector(".message").textContent);
}

// ---- Drafts ----

export function keep({ whole: hit }) {
  stored("sessionStorage", (storage) => storage.setItem(storageKey(hit), JSON.stringify(hit.entries())));
  saveSoon(() => { if (hit.form.isConnected) saveDraft(hit); });
}

export function saveDraft(hit, { leaving = false } = {}) {
  if (!hit.changed || hit.sending || hit.form.elements.step) return;  // of a step before the work this tab alone keeps it
  hit.changed = false;
  const body = JSON.stringify({ token: hit.form.elements.token.value, hit: Number(hit.form.dataset.hit), entries: hit.entries() });
  const headers = { "Content-Type": "application/json", Accept: "application/json" };
  fetch(address(), { method: "PUT", headers, body, keepalive: leaving }).catch(() => { hit.changed = true; });
}

export function restore(hit) {
  hit.restore(JSON.parse(stored("sessionStorage", (storage) => storage.getItem(storageKey(hit))) ?? "{}"));
  handOver(hit);
}

// A draft that an earlier version left in this tab names items by number, which the server alone can read: it gets the
// draft, and shows the HIT with it.
async function handOver(hit) {
  const draft = stored("sessionStorage", (storage) => storage.getItem(earlierKey(hit)));
  if (!draft || hit.form.elements.step) return;
  const body = JSON.stringify({ token: hit.form.elements.token.value, hit: Number(hit.form.dataset.hit), entries: JSON.parse(draft) });
  const headers = { "Content-Type": "application/json", Accept: "application/json" };
  const saved = await fetch(address(), { method: "PUT", headers, body }).catch(() => null);
  if (!saved?.ok) return;
  stored("sessionStorage", (storage) => storage.removeItem(earlierKey(hit)));
  const reply = await ask("GET");
  if (reply?.ok && hit.form.isConnected && !hit.changed && !hit.sending) hit.next(reply.text);
}

// ---- The answer ----

export function submit({ whole: hit }, event) {
  event.preventDefault();
  if (hit.busy() || !hit.ready()) return;
  hit.sending = true;
  hit.answer = answer(hit);
  hit.tries = 0;
  hit.form.setAttribute("aria-busy", "true");
  say(hit, "");
  hit.draw();
  send(hit);
}

function answer(hit) {
  const form = new URLSearchParams(hit.fields());
  for (const name of ["token", "step", "hit", "replaces", "viewport"]) {
    if (hit.form.elements[name]) form.set(name, hit.form.elements[name].value);
  }
  return form;
}

export async function send(hit) {
  if (!hit.sending || hit.inFlight) return;
  clearTimeout(hit.retryTimer);
  hit.inFlight = true;
  const reply = await ask("POST", hit.answer);
  hit.inFlight = false;
  if (!reply || reply.status >= 500 || reply.status === 429) return retryLater(hit, reply);
  if (!reply.ok) return refused(hit, reply.error);
  stored("sessionStorage", (storage) => storage.removeItem(storageKey(hit)));
  hit.next(reply.text);
}

// What the server says: {status, ok, text, error}, or null when it could not be reached or was cut off.
export async function ask(method, body) {
  const limit = new AbortController();           // AbortSignal.timeout is newer than the browsers that Easel supports
  const timer = setTimeout(() => limit.abort(), SEND_TIMEOUT_MS);
  try {
    const response = await fetch(address(), { method, body, headers: asScript, signal: limit.signal });
    const text = await response.text();
    const error = response.ok ? null : refusal(text);
    return { status: response.status, ok: response.ok, text, error };
  } catch {
    return null;
  } finally {
    clearTimeout(timer);
  }
}

function refusal(text) {
  const unclear = { message: words("The server did not understand this answer.") };
  try { return { ...unclear, ...JSON.parse(text).error }; } catch { return unclear; }
}

function retryLater(hit, reply) {
  const wait = Math.min(LONGEST_RETRY_MS, 1000 * 2 ** hit.tries++);
  const cause = reply
    ? words("The server is busy. Your answer is kept and will be sent.")
    : words("Not connected. Your answer is kept and will be sent.");
  say(hit, cause, "warning");
  hit.form.querySelector(".try-now").hidden = false;
  hit.retryTimer = setTimeout(() => send(hit), wait);
}

function refused(hit, { code, message }) {
  // Comments are required since this page was opened. A new one has the fields, and what was entered.
  if (code === "comment_missing" && !hit.form.querySelector(".reason")) return location.reload();
  hit.sending = false;
  hit.form.removeAttribute("aria-busy");
  hit.form.querySelector(".try-now").hidden = true;
  hit.draw();
  say(hit, message, "error");
}
