// What a researcher types into the settings is kept in this browser until it is saved, and offered when the form opens
// again: after a crash, or after the session ended. It is never filled in by itself, and secrets are not kept.

const PREFIX = "easel:entries:";
const SENT = "easel:entries-sent";
const DELAY_MS = 300;
const MAX_AGE_MS = 30 * 24 * 3_600_000;

/** Return the result of `action`, or null without storage: in private windows, or if it is full. */
function stored(action) {
  try { return action(); } catch { return null; }
}

let isLoggingOut = false;

const readEntries = (key) => stored(() => JSON.parse(localStorage.getItem(key)));
const removeEntries = (key) => stored(() => localStorage.removeItem(key));
const keysOfEntries = () => (stored(() => Object.keys(localStorage)) ?? []).filter((key) => key.startsWith(PREFIX));

/** Forget entries that were saved, that are old, and at a log-out all of them. Every researcher's page calls this. */
export function forgetKeptEntries() {
  const sentKey = stored(() => sessionStorage.getItem(SENT));
  if (sentKey) {
    stored(() => sessionStorage.removeItem(SENT));
    if (new URLSearchParams(location.search).has("done")) removeEntries(sentKey);
  }
  for (const key of keysOfEntries()) {
    if (!(Date.now() - readEntries(key)?.at < MAX_AGE_MS)) removeEntries(key);
  }
  document.addEventListener("submit", ({ target }) => {
    isLoggingOut = /\/logout(-everywhere)?$/.test(target.getAttribute("action") ?? "");
    if (isLoggingOut) keysOfEntries().forEach(removeEntries);
  });
}

/** Keep what is typed into a form whose `data-kept-as` names the reader, the campaign and the step, and offer it. */
export function keepEntries(form, isChanged) {
  const key = PREFIX + form.dataset.keptAs;
  const secretNames = new Set(form.dataset.notKept.split(" "));
  const fields = [...form.elements].filter((field) => field.name && !/^(hidden|password|file|submit)$/.test(field.type)
    && !(field instanceof HTMLFieldSetElement) && !(field instanceof HTMLButtonElement) && !secretNames.has(field.name));
  const isBox = (field) => field.type === "checkbox" || field.type === "radio";
  const idOf = (field) => (field.type === "radio" ? `${field.name}=${field.value}` : field.name);
  const valueOf = (field) => (isBox(field) ? field.checked : field.value);
  const differs = (field, values) => Object.hasOwn(values, idOf(field)) && values[idOf(field)] !== valueOf(field);
  let offer;
  let undecided = "unsaved" in form.dataset ? readEntries(key)?.values ?? {} : {}; // a refused form still has them all
  let timer;

  function keep() {
    clearTimeout(timer);
    const changed = fields.filter(isChanged).map((field) => [idOf(field), valueOf(field)]);
    const values = { ...undecided, ...Object.fromEntries(changed) };
    if (!Object.keys(values).length) removeEntries(key);
    else stored(() => localStorage.setItem(key, JSON.stringify({ at: Date.now(), values })));
  }

  function use(values) {
    for (const field of fields.filter((one) => differs(one, values) && !isChanged(one))) {
      if (isBox(field)) field.checked = values[idOf(field)];
      else field.value = values[idOf(field)];
      for (let place = field.closest("details"); place; place = place.parentElement.closest("details")) place.open = true;
      field.closest("fieldset.criterion")?.removeAttribute("hidden");
    }
    dispatchEvent(new PageTransitionEvent("pageshow")); // as if the browser had put them back, which editors follow
    form.dispatchEvent(new Event("input", { bubbles: true }));
    form.dispatchEvent(new Event("change", { bubbles: true }));
  }

  function decide(values) {
    undecided = {};
    offer.remove();
    offer = undefined;
    if (values) use(values);
    keep();
    form.querySelector(":is(input, textarea, select):not([type=hidden], [hidden])")?.focus();
  }

  function offerEntries() {
    const entries = readEntries(key);
    if (offer || !entries || "unsaved" in form.dataset) return;
    if (!fields.some((field) => differs(field, entries.values))) {
      if (!fields.some(isChanged)) removeEntries(key); // they are saved
      return;
    }
    undecided = entries.values;
    offer = drawOffer(new Date(entries.at), () => decide(entries.values), () => decide());
    form.before(offer);
  }

  form.addEventListener("input", () => {
    isLoggingOut = false; // the page asked whether to leave it
    clearTimeout(timer);
    timer = setTimeout(keep, DELAY_MS);
  });
  form.addEventListener("submit", () => {
    keep();
    stored(() => sessionStorage.setItem(SENT, key));
  });
  addEventListener("pagehide", () => { if (!isLoggingOut && fields.some(isChanged)) keep(); });
  addEventListener("pageshow", ({ isTrusted }) => { if (isTrusted) offerEntries(); });
}

/** Return the question whether to continue with the entries of a moment. */
function drawOffer(moment, onUse, onDiscard) {
  const isToday = moment.toDateString() === new Date().toDateString();
  const time = moment.toLocaleTimeString("en", { hour: "numeric", minute: "2-digit" });
  const date = isToday ? "" : ` on ${moment.toLocaleDateString("en", { day: "numeric", month: "long" })}`;
  const button = (label, onClick, className) => {
    const made = Object.assign(document.createElement("button"), { type: "button", textContent: label, className });
    made.addEventListener("click", onClick);
    return made;
  };
  const offer = Object.assign(document.createElement("div"), { className: "notice undo", id: "kept-entries" });
  offer.setAttribute("role", "status");
  const words = document.createElement("p");
  words.textContent = `Continue with what you had typed at ${time}${date}? It was not saved.`;
  offer.append(words, button("Use", onUse, ""), button("Discard", onDiscard, "quiet"));
  return offer;
}
