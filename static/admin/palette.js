// The search over everything by Ctrl+K, Cmd+K or the button, and the shortcuts of single keys. Without this file the
// button is a link to a page with the same rows.

const WAIT_MS = 120;                  // before a search, while one types
const SEQUENCE_MS = 1500;             // between the two keys of a shortcut
const STORED_CHOICE = "easel-single-keys";
const TAB_BY_KEY = { o: "overview", i: "items", q: "checks" };

const opener = document.getElementById("open-palette");
const palette = document.getElementById("palette-dialog");
const shortcuts = document.getElementById("shortcuts");
const words = document.getElementById("palette-words");
const list = document.getElementById("palette-entries");
const status = document.getElementById("palette-status");
const singleKeys = document.getElementById("single-keys");

let options = [];
let active = -1;
let isSearching = false;              // the rows are not yet those of the words
let opensFirst = false;               // Enter was pressed before they were
let timer;
let searching;                        // ends the search before

if (opener) begin();

function begin() {
  opener.setAttribute("aria-haspopup", "dialog");
  opener.setAttribute("aria-keyshortcuts", "Control+K Meta+K");
  opener.title = "Ctrl+K or ⌘K";
  opener.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;  // in a tab of its own
    event.preventDefault();
    openPalette();
  });
  words.addEventListener("input", () => {
    clearTimeout(timer);
    searching?.abort();               // or its rows would pass for those of the new words
    timer = setTimeout(search, WAIT_MS);
    isSearching = true;
    opensFirst = false;
    activate(-1);
  });
  words.addEventListener("keydown", moveOrOpen);
  list.addEventListener("click", (event) => {
    if (event.target.closest("a") && !event.ctrlKey && !event.metaKey && !event.shiftKey) palette.close();
  });
  for (const dialog of [palette, shortcuts]) {
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    // The page below has uses of its own for these keys.
    dialog.addEventListener("keydown", (event) => { if (/^(Escape|Arrow)/.test(event.key)) event.stopPropagation(); });
  }
  palette.addEventListener("close", () => { clearTimeout(timer); searching?.abort(); });
  document.getElementById("open-shortcuts").addEventListener("click", () => {
    palette.close();
    shortcuts.showModal();
  });
  singleKeys.checked = areSingleKeysOn();
  singleKeys.addEventListener("change", () => storeSingleKeys(singleKeys.checked));
  document.addEventListener("keydown", followShortcut);
}

function openPalette() {
  if (palette.open) return;
  shortcuts.close();
  palette.showModal();
  words.value = "";
  opensFirst = false;
  words.focus();
  search();
}

async function search() {
  searching?.abort();
  const own = searching = new AbortController();
  const query = new URLSearchParams({ q: words.value, campaign: opener.dataset.campaign });
  try {
    const headers = { accept: "application/json", "x-easel": "fetch" };
    const reply = await fetch(`/admin/search?${query}`, { headers, signal: own.signal });
    const found = await reply.json();
    if (own.signal.aborted) return;
    if (!reply.ok) throw new Error(found.error.message);
    show(found.entries);
  } catch (error) {
    if (own.signal.aborted) return;
    show([]);
    status.textContent = error instanceof TypeError ? "The server cannot be reached. Try again." : error.message;
  }
}

function show(entries) {
  options = [];
  const groups = [];
  for (const entry of entries) {
    if (groups.at(-1)?.dataset.title !== entry.group) groups.push(groupElement(entry.group, groups.length));
    options.push(optionElement(entry, options.length));
    groups.at(-1).append(options.at(-1));
  }
  list.replaceChildren(...groups);
  list.scrollTop = 0;
  words.setAttribute("aria-expanded", String(options.length > 0));
  status.textContent = options.length ? `${options.length} ${options.length === 1 ? "result" : "results"}` : "Nothing found.";
  activate(options.length ? 0 : -1);
  isSearching = false;
  if (opensFirst) options[0]?.click();
  opensFirst = false;
}

function groupElement(title, number) {
  const group = document.createElement("div");
  const heading = Object.assign(document.createElement("div"), { className: "group", id: `palette-group-${number}`, textContent: title });
  heading.setAttribute("role", "presentation");
  group.setAttribute("role", "group");
  group.setAttribute("aria-labelledby", heading.id);
  group.dataset.title = title;
  group.append(heading);
  return group;
}

function optionElement(entry, number) {
  const option = Object.assign(document.createElement("a"), { id: `palette-entry-${number}`, href: entry.url, tabIndex: -1 });
  option.setAttribute("role", "option");
  option.setAttribute("aria-selected", "false");
  for (const part of [entry.title, entry.detail]) {
    if (part) option.append(Object.assign(document.createElement("span"), { textContent: part, dir: "auto" }), " ");
  }
  return option;
}

function activate(place) {
  options[active]?.setAttribute("aria-selected", "false");
  active = place;
  const option = options[active];
  if (!option) return words.removeAttribute("aria-activedescendant");
  option.setAttribute("aria-selected", "true");
  option.scrollIntoView({ block: "nearest" });
  words.setAttribute("aria-activedescendant", option.id);
}

function moveOrOpen(event) {
  if (event.isComposing) return;
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (event.key in steps && options.length && !isSearching) {
    event.preventDefault();
    activate((active + steps[event.key] + options.length) % options.length);
  } else if (event.key === "Enter") {
    event.preventDefault();           // the form would close the dialog
    if (isSearching) opensFirst = true;
    else options[active]?.click();
  }
}

let began = -Infinity;                // when the first key of a shortcut was pressed

function followShortcut(event) {
  if (event.defaultPrevented || event.isComposing || event.altKey) return;
  if ((event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
    return;
  }
  if (event.ctrlKey || event.metaKey || isTyping(event.target) || document.querySelector("dialog[open]")) return;
  if (areSingleKeysOn()) followSingleKey(event);
}

function followSingleKey(event) {
  const isSecond = event.timeStamp - began < SEQUENCE_MS;
  began = event.key === "g" ? event.timeStamp : -Infinity;
  if (event.key === "/") {
    event.preventDefault();
    openPalette();
  } else if (event.key === "?") {
    event.preventDefault();
    shortcuts.showModal();
  } else if (isSecond && Object.hasOwn(TAB_BY_KEY, event.key)) {
    document.querySelector(`[data-campaign-tab="${TAB_BY_KEY[event.key]}"]`)?.click();
  }
}

function isTyping(element) {
  // A field of a dialog that has just been closed has the focus for a moment more.
  return element instanceof Element && element.closest("input, textarea, select, [contenteditable]") !== null
    && element.closest("dialog:not([open])") === null;
}

function areSingleKeysOn() {
  try {
    return localStorage.getItem(STORED_CHOICE) !== "off";
  } catch {
    return true;                      // browsers may refuse the storage
  }
}

function storeSingleKeys(isOn) {
  try {
    localStorage.setItem(STORED_CHOICE, isOn ? "on" : "off");
  } catch { /* then the choice holds for no page */ }
}
