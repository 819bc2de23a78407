// The analysis page: every part is fetched by itself, and what is pressed in a part changes that part alone. Without this file each
// part is a page of its own.

const analysis = document.getElementById("analysis");
const said = document.getElementById("said");
const TABLE = ["table", "sort", "order", "page", "search"]; // parts of the address that speak of one table

const shown = new Map(); // name of a part: the address its content came from
const requests = new Map(); // name of a part: how often it was asked for, so that an answer that is late changes nothing

const part = (name) => analysis.querySelector(`.part[id="${name}"]`);
const title = (name) => part(name).querySelector("h2").firstChild.textContent.trim();

/** A line above a part's title, where nothing has to make way for it, that says how long its fit has run. */
function busy(name) {
  const line = document.createElement("p");
  line.className = "busy";
  const words = document.createElement("span");
  line.append(document.createElement("progress"), words);
  line.firstChild.setAttribute("aria-label", `Estimating ${title(name).toLowerCase()}`);
  const begun = performance.now();
  const tell = () => {
    const seconds = Math.floor((performance.now() - begun) / 1000);
    words.textContent = seconds < 2 ? "Estimating …" : `Estimating … ${seconds} s`;
  };
  tell();
  const timer = setInterval(tell, 1000);
  part(name).setAttribute("aria-busy", "true");
  part(name).querySelector(".busy")?.remove();
  part(name).prepend(line);
  return () => {
    clearInterval(timer);
    line.remove();
    part(name).removeAttribute("aria-busy");
  };
}

function failed(name, words, address) {
  const line = document.createElement("p");
  line.className = "notice error";
  line.setAttribute("role", "alert");
  const again = document.createElement("a");
  again.href = address;
  again.dataset.part = "";
  again.textContent = "Try again";
  line.append(`${words} `, again);
  part(name).querySelector(".notice.error")?.remove();
  (part(name).querySelector(".title") ?? part(name).querySelector("h2")).after(line);
}

/** Put a part's new content in its place; what had the focus keeps it. */
function swap(name, html) {
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  const next = fresh.content.querySelector(".part");
  const still = kept(part(name));
  const key = part(name).contains(document.activeElement) ? document.activeElement.dataset.key ?? document.activeElement.id : null;
  part(name).replaceWith(next);
  if (key) (next.querySelector(`[data-key="${CSS.escape(key)}"]`) ?? next.querySelector(`#${CSS.escape(key)}`))?.focus({ preventScroll: true });
  still();
  next.querySelectorAll(".drawing").forEach(explore);
}

/** Remembers where the part is whose title is in sight, or else the first one in sight; gives what scrolls it back there. */
function kept(changing) {
  const parts = [...analysis.querySelectorAll(".part")];
  const top = (of) => of.getBoundingClientRect().top;
  const seen = parts.find((it) => top(it) >= 0 && top(it) < innerHeight) ?? parts.find((it) => it.getBoundingClientRect().bottom > 0);
  const before = seen && top(seen);
  return () => {
    if (seen && seen !== changing) scrollBy({ top: top(seen) - before, behavior: "instant" });
  };
}

/** Fetch a part and put it in its place; gives whether it is there. */
async function load(name, address) {
  const mine = (requests.get(name) ?? 0) + 1;
  requests.set(name, mine);
  const done = busy(name);
  const reply = await fetch(address, { headers: { "X-Easel": "fetch", accept: "text/html" } }).catch(() => null);
  const html = await reply?.text().catch(() => null);
  if (requests.get(name) !== mine) return false;
  done();
  if (reply?.redirected) {
    location.reload(); // logged out
  } else if (reply?.ok && html) {
    swap(name, html);
    shown.set(name, address);
    said.textContent = `${title(name)}: shown`;
    return true;
  } else {
    failed(name, reply ? reason(html) : "The connection was lost. Nothing has changed.", address);
  }
  return false;
}

/** What the server says on its error page. */
function reason(html) {
  const page = new DOMParser().parseFromString(html ?? "", "text/html");
  return page.querySelector("main h1")?.textContent.trim() ?? "This part could not be shown.";
}

/** Show what was pressed, and give the page an address that shows it again. */
async function go(name, url) {
  const address = new URLSearchParams(location.search);
  const own = reads(part(name)).filter((key) => address.get(key) !== url.searchParams.get(key));
  for (const key of [...TABLE, ...own]) {
    const value = url.searchParams.get(key);
    if (value) address.set(key, value); else address.delete(key);
  }
  const home = whole ? `${analysis.dataset.address}?${address}#${name}` : url.pathname + url.search;
  if (!await load(name, url.pathname + url.search)) return;
  history.pushState(Object.fromEntries(shown), "", home);
  for (const other of analysis.querySelectorAll(".part")) {
    if (other.id !== name && reads(other).some((key) => own.includes(key))) await load(other.id, `${analysis.dataset.address}/${other.id}?${address}`);
  }
  if (own.length && location.href.endsWith(home)) history.replaceState(Object.fromEntries(shown), "", home);
}

/** What of the address a part is made from, besides what is of one table. */
const reads = (of) => of.dataset.own?.split(" ") ?? [];

analysis.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-part]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  go(link.closest(".part").id, new URL(link.href));
});

analysis.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-part]")) return;
  event.preventDefault();
  const url = new URL(event.target.action);
  url.search = new URLSearchParams([...new FormData(event.target)].filter(([, value]) => value));
  go(event.target.closest(".part").id, url);
});

addEventListener("popstate", (event) => {
  for (const [name, address] of Object.entries(event.state ?? {})) {
    if (part(name) && shown.get(name) !== address) load(name, address);
  }
});

// Pictures: the dot nearest to the pointer is named under the picture

const NEAR = 24; // pixels

function explore(frame) {
  const picture = frame.querySelector("svg");
  const readout = document.getElementById(picture.getAttribute("aria-describedby"));
  const usual = readout.textContent;
  const dots = [...picture.querySelectorAll(".dot")];
  for (const dot of dots) {
    dot.dataset.words = dot.querySelector("title").textContent;
    dot.querySelector("title").remove(); // said at once below, instead of after a while beside the pointer
  }
  let near = null;
  const mark = (dot, is) => {
    if (!dot) return;
    const intervals = picture.querySelectorAll(`.interval[data-dot="${dots.indexOf(dot)}"]`);
    for (const mine of [dot, ...intervals]) mine.classList.toggle("near", is);
  };
  const tell = (dot) => {
    if (dot === near) return;
    mark(near, false);
    near = dot;
    mark(near, true);
    readout.textContent = near ? near.dataset.words : usual;
  };
  frame.addEventListener("pointermove", (event) => {
    let best = NEAR;
    let found = null;
    for (const dot of dots) {
      const box = dot.getBoundingClientRect();
      const away = Math.hypot(event.clientX - (box.left + box.right) / 2, event.clientY - (box.top + box.bottom) / 2);
      if (away < best) [best, found] = [away, dot];
    }
    tell(found);
  });
  frame.addEventListener("pointerleave", () => tell(null));
}

analysis.querySelectorAll(".drawing").forEach(explore);

// One after the other, since the server fits one thing at a time; first the part that the address leads to.
const waiting = [...analysis.querySelectorAll("[data-waiting]")];
const whole = waiting.length > 0;
const wanted = ({ id }) => `#${id}` === location.hash;
for (const { id, dataset } of [...waiting.filter(wanted), ...waiting.filter((it) => !wanted(it))]) await load(id, dataset.waiting);
history.replaceState(Object.fromEntries(shown), "");
