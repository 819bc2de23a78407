// Researchers' pages work without this file; it brings the current tab into view, adds copy buttons, times in the
// reader's zone, a warning before unsaved settings are left, and a HIT that follows the form.

// On a phone the tabs go on beyond the edge, and the current one may lie there.
document.querySelector(".tabs [aria-current]")?.scrollIntoView({ inline: "nearest", block: "nearest" });

const inTheReadersZone = (where) => {
  for (const time of where.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    time.title = time.textContent;
    time.textContent = moment.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  }
};
inTheReadersZone(document);

for (const button of document.querySelectorAll("button[data-copy]")) {
  const words = button.textContent;
  // Browsers hide the clipboard from pages that came over plain HTTP from another machine.
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = words; }, 2000);
  });
}

// A crowd that may be too small for what its campaign wants.
for (const few of document.querySelectorAll("[data-fewest]")) {
  const { annotators } = few.closest("form").elements;
  const compare = () => { few.hidden = annotators.valueAsNumber >= few.dataset.fewest; };
  annotators.addEventListener("input", compare);
  compare();  // a browser may have kept another number
}

// Windows in small: each as wide as there is room for.
for (const small of document.querySelectorAll(".window")) {
  const fit = () => small.style.setProperty("--scale", Math.min(1, small.clientWidth / small.dataset.width));
  new ResizeObserver(fit).observe(small);
}

// The settings form: what was changed and not saved is said beside the button, and asked about before the page is left.
const settings = document.querySelector("form.settings");
if (settings) {
  const fields = [...settings.elements].filter((field) => field.name && field.type !== "hidden" && !(field instanceof HTMLFieldSetElement));
  const chosen = (select) => [...select.options].findIndex((option) => option.defaultSelected);
  const changed = (field) => {
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (field instanceof HTMLSelectElement) return field.selectedIndex !== Math.max(0, chosen(field));
    return field.value !== field.defaultValue;
  };
  const unsaved = () => "unsaved" in settings.dataset || fields.some(changed);
  let leaving = false;

  const tell = () => {
    const words = unsaved() ? "Not saved yet" : "";
    const line = settings.querySelector(".unsaved");
    if (line.textContent !== words) line.textContent = words;
  };

  settings.addEventListener("input", tell);
  settings.addEventListener("submit", () => { leaving = true; });
  addEventListener("pageshow", () => { leaving = false; tell(); });
  addEventListener("beforeunload", (event) => { if (!leaving && unsaved()) event.preventDefault(); });
}

// Of a draft. A campaign that was launched shows no such frame, and its way of asking is fixed.
const draft = document.querySelector("form.settings:has(iframe[name=seen])");
if (draft) {
  // What annotators see of it: a page whose address has what the form says. The frame goes there once nobody has typed
  // for a moment, and by `replace`, so that Back still leaves this page.
  const frame = draft.querySelector("iframe[name=seen]");
  let looked;
  const seen = () => {
    const query = new URLSearchParams();
    for (const field of draft.querySelectorAll("[data-seen] :is(input, textarea, select)")) {
      if (field.disabled || !field.value || (/checkbox|radio/.test(field.type) && !field.checked)) continue;
      if (field.closest("[data-designs]")?.hidden) continue;
      query.set(field.name, field.value.slice(0, frame.dataset.longest));
    }
    return `${frame.src.split("?")[0]}?${query}`;
  };
  let last = frame.src;
  const look = (delay = 300) => {
    clearTimeout(looked);
    looked = setTimeout(() => {
      if (seen() === last) return;
      last = seen();
      frame.contentWindow.location.replace(last);
    }, delay);
  };

  // Fields that the chosen way of asking or update law does not read are left out; what is usual for it is chosen anew.
  // What was chosen for another one is there again when it is. Of what is hidden, only what could not be sent stays behind.
  const { design, update_law } = draft.elements;
  const usual = ["items_per_hit", "update_law", "prior"].map((name) => draft.elements[name]);
  const chosenFor = {};
  let before = design.value;
  const chosenLaw = () => update_law.value || draft.querySelector("[name=design]:checked").dataset.law;
  const isFor = (names, name) => !names || names.split(" ").includes(name);
  const fit = () => {
    const law = chosenLaw();
    for (const field of draft.querySelectorAll("[data-designs], [data-laws]")) {
      field.hidden = !isFor(field.dataset.designs, design.value) || !isFor(field.dataset.laws, law);
      if (field instanceof HTMLOptionElement) field.disabled = field.hidden;
      for (const control of field.querySelectorAll("input, select, textarea")) {
        control.disabled = false;
        control.disabled = field.hidden && !control.checkValidity();
      }
    }
    for (const select of draft.querySelectorAll("select")) {
      if (select.selectedOptions[0]?.disabled) select.selectedIndex = [...select.options].findIndex((option) => !option.disabled);
    }
  };
  // To whoever chose a goal, the rule that suits it, where it can ask.
  const { goal, rule } = draft.elements;
  const offers = [...draft.querySelectorAll("[data-rule]")];
  const offer = () => {
    const law = chosenLaw();
    for (const offered of offers) {
      const { goal: reached, rule: suits, laws } = offered.dataset;
      const able = isFor(laws, law) && !rule.querySelector(`[value=${suits}]`).disabled;
      offered.hidden = !able || goal.value !== reached || rule.value === suits;
    }
  };
  for (const offered of offers) {
    const take = offered.querySelector("button");
    take.hidden = false;
    take.addEventListener("click", () => {
      rule.value = offered.dataset.rule;
      rule.dispatchEvent(new Event("change", { bubbles: true }));
      rule.focus();
    });
  }

  draft.addEventListener("change", ({ target }) => {
    if (target.name === "design") {
      chosenFor[before] = usual.map(({ value }) => value);
      before = design.value;
      usual.forEach((control, place) => { control.value = chosenFor[before]?.[place] ?? ""; });
    }
    if (target.name === "design" || target === update_law) fit();
    offer();
    look(0);
  });
  fit();
  offer();

  draft.addEventListener("input", () => look());
  addEventListener("pageshow", () => { fit(); offer(); look(0); });
}

// Criteria: those that are filled in are shown, the first two to begin with, and others when they are asked for.
for (const criteria of document.querySelectorAll("details.criteria")) {
  const places = [...criteria.querySelectorAll("fieldset.criterion")];
  const add = criteria.querySelector("[data-add]");
  const fields = (place) => [...place.querySelectorAll("input, textarea")];
  const empty = (place) => fields(place).every(({ value }) => !value);
  const fit = () => { add.parentElement.hidden = places.every(({ hidden }) => !hidden); };
  const shown = Math.max(2, ...places.map((place, at) => (empty(place) ? 0 : at + 1)));
  places.forEach((place, at) => {
    const remove = place.querySelector("[data-remove]");
    place.hidden = at >= shown;
    remove.parentElement.hidden = false;
    remove.addEventListener("click", () => {
      for (const field of fields(place)) field.value = "";
      place.hidden = true;
      fit();
      add.focus();
      add.dispatchEvent(new Event("input", { bubbles: true }));      // the form has changed
    });
  });
  add.addEventListener("click", () => {
    const place = places.find(({ hidden }) => hidden);
    place.hidden = false;
    fit();
    fields(place)[0].focus();
  });
  fit();
}

const FILE_CHANGED = "The file was changed or moved after it was chosen. Nothing was imported; choose it again.";

/** Return whether the browser still reads a chosen file; it does not once the file has changed on the disk. */
const isReadable = async (file) => !file || file.slice(0, 1).arrayBuffer().then(() => true, () => false);

// The upload forms: items are shown before they are imported; of items and responses it is said how far the import is.
for (const form of document.querySelectorAll("form[data-upload]")) {
  const part = (name) => form.querySelector(`[data-${name}]`);
  const file = form.elements.file;
  const preview = part("preview");
  const plain = preview?.innerHTML;
  const what = form.dataset.upload;
  const tooLarge = () => file.files[0]?.size > form.dataset.maxMb * 2 ** 20;

  // What is wrong never stands below a sentence that says that all is well.
  const say = (message) => {
    part("problem").textContent = message ?? "";
    part("problem").hidden = !message;
    const fine = preview?.querySelector(".fine");
    if (fine) fine.hidden = Boolean(message);
  };

  // The button says how much it imports, and is off while an import would be refused.
  const button = form.querySelector("button:not([formaction])");
  const usual = button.textContent;
  const offer = () => {
    const rows = preview?.querySelector("[data-rows]")?.dataset.rows;
    const wrong = preview?.querySelector("[role=alert]");
    button.disabled = Boolean(wrong);
    button.textContent = rows && !wrong ? usual.replace(" ", ` ${Number(rows).toLocaleString()} `).replace(/s$/, rows === "1" ? "" : "s") : usual;
  };

  const show = (words, share) => {
    part("progress").hidden = words === null;
    form.querySelector("[data-progress] [role=status]").textContent = words ?? "";
    const bar = part("progress").querySelector("progress");
    if (share === undefined) bar.removeAttribute("value"); else bar.value = share;
  };

  // Columns that a refusal proposes, where none was named.
  const propose = (columns) => {
    for (const [name, column] of Object.entries(columns ?? {})) {
      const field = form.elements[name];
      if (field && !field.value) field.value = column;
    }
    if (columns) part("answer-options").open = true;
  };

  const busy = (is) => { button.disabled = is; };

  const refuseLarge = () => say(`This file has more than ${form.dataset.maxMb} MB. Nothing was sent; split it, or ask the operator to raise the limit.`);

  // The end of a zip, which has the list of its files; the zip itself is perhaps a gigabyte, and is only sent to be imported.
  const listOf = async (zip) => {
    const tail = new DataView(await zip.slice(-65_557).arrayBuffer());
    let at = tail.byteLength - 22;
    while (at >= 0 && tail.getUint32(at, true) !== 0x06054b50) at--;
    const length = at < 0 ? 0 : tail.getUint32(at + 12, true);
    return zip.slice(-(tail.byteLength - Math.max(at, 0) + length));
  };
  const withListOfZip = async (body) => {
    const zip = form.elements.media?.files[0];
    body.delete("media");
    const list = zip && await listOf(zip).catch(() => null); // null where the zip was changed since it was chosen
    if (list) body.append("media", list, zip.name);
    if (form.elements.skip_unnamed?.checked) body.set("skip_unnamed", "on");
    return body;
  };

  // What is in the file, read by the server; `put` takes it. An answer that another choice has overtaken is dropped.
  let asked = 0;
  const describe = async (body, put) => {
    const mine = ++asked;
    const headers = { "x-csrf-token": form.elements.csrf.value, "x-easel": "fetch", accept: "application/json" };
    show("Reading the file …");
    try {
      const reply = await fetch(`${form.getAttribute("action")}/preview`, { method: "POST", body, headers });
      const text = await reply.text();
      if (mine !== asked) return;
      if (reply.ok) put(text);
      else say(JSON.parse(text).error.message);
    } catch {
      const problem = await isReadable(file.files[0])
        ? "The file could not be sent. Nothing was imported; check the connection and choose it again." : FILE_CHANGED;
      if (mine === asked) say(problem);
    } finally {
      if (mine === asked) show(null);
    }
  };

  let looked; // the file that was looked at last
  const look = async () => {
    looked = file.files[0];
    say();
    asked++;
    show(null);
    if (preview) preview.innerHTML = plain;
    offer();
    if (!file.files.length) return;
    if (tooLarge()) { refuseLarge(); return; }
    if (!preview) return;
    const body = new FormData();
    body.append("file", file.files[0]);
    if (form.elements.replace?.checked) body.append("replace", "on");
    await describe(await withListOfZip(body), (html) => { preview.innerHTML = html; offer(); });
  };
  file.addEventListener("change", look);
  // Choosing the same file again, perhaps after mending it, is no change for Chromium: it sends `cancel` with a new file.
  file.addEventListener("cancel", () => { if (file.files[0] !== looked) look(); });

  form.addEventListener("input", (event) => {
    if (event.target.name === "template" && form.elements.show_by) form.elements.show_by.value = "template";
    if (event.target.name === "shown" && form.elements.show_by) form.elements.show_by.value = "shown";
  });

  // Columns matched in another way: the controls stay as they are, what follows from them is told anew.
  form.addEventListener("change", async (event) => {
    const checked = preview?.querySelector("[data-checked]");
    const whole = event.target.closest?.("[data-refresh]");
    const ofZip = event.target.name === "media" || event.target.name === "skip_unnamed";
    if (ofZip) say(); // it may be another zip
    if (event.target === file || !(checked || whole) || !file.files.length) return;
    say();
    describe(await withListOfZip(new FormData(form)), (html) => {
      if (whole || !html.includes("data-checked")) {
        const { name, id } = event.target;
        preview.innerHTML = html;
        (preview.querySelector(`#${id}`) ?? preview.querySelector(`[name="${name}"]`))?.focus();
        offer();
        return;
      }
      const anew = document.createElement("template");
      anew.innerHTML = html;
      checked.replaceWith(anew.content.querySelector("[data-checked]"));
      offer();
    });
  });

  // A file that is dropped anywhere on the page is meant for the form; elsewhere the browser would open it instead.
  const drop = part("drop");
  if (drop) {
    drop.querySelector(".invitation").hidden = false;
    const over = (is) => drop.classList.toggle("over", is);
    const brings = (event) => event.dataTransfer?.types.includes("Files");
    document.addEventListener("dragover", (event) => { if (brings(event)) { event.preventDefault(); over(true); } });
    document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) over(false); });
    document.addEventListener("drop", (event) => {
      if (!brings(event)) return;
      event.preventDefault();
      over(false);
      file.files = event.dataTransfer.files;
      file.dispatchEvent(new Event("change", { bubbles: true }));
    });
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    say();
    if (tooLarge()) { refuseLarge(); return; }
    const request = new XMLHttpRequest();
    const rows = Number(preview?.querySelector("[data-rows]")?.dataset.rows ?? 0);
    const failed = async () => {
      const readable = await isReadable(file.files[0]);
      busy(false);
      show(null);
      if (!readable) say(FILE_CHANGED);
      else say(what === "items" ? "The connection was lost. Either all items were imported or none: reload this page to see."
        : "The connection was lost. What was imported so far stays: import the same file again, and the rest follows.");
    };
    const read = () => {
      const last = request.responseText.trimEnd().split("\n").at(-1);
      if (!last || !request.responseText.endsWith("\n")) return null;
      const report = JSON.parse(last);
      if (report.rows) show(`${report.rows.toLocaleString()} ${rows ? `of ${rows.toLocaleString()} ` : ""}${what} imported`, rows ? report.rows / rows : undefined);
      return report;
    };
    request.upload.onprogress = (sent) => show("Sending the file …", sent.loaded / sent.total);
    request.upload.onload = () => show("Importing …");
    request.onprogress = () => { if (request.status === 200) read(); };
    request.onerror = failed;
    request.onload = () => {
      if (request.status !== 200) {
        busy(false);
        show(null);
        say(JSON.parse(request.responseText).error.message);
        return;
      }
      const report = read();
      if (report?.done) { location.assign(report.done); return; }
      if (!report?.error) { failed(); return; }
      busy(false);
      show(null);
      say(report.error.message);
      propose(report.error.proposal);
    };
    request.open("POST", form.getAttribute("action"));
    request.setRequestHeader("x-easel", "fetch");
    request.setRequestHeader("accept", "application/json");
    request.setRequestHeader("x-csrf-token", form.elements.csrf.value);
    busy(true);
    show("Sending the file …", 0);
    request.send(new FormData(form));
  });
}

// A plan is worked out beside the server; its lines tell how far that is. Who stops it, or leaves the page, ends it.
const plan = document.querySelector("form[data-plan]");
if (plan) {
  const part = (name) => document.querySelector(`[data-${name}]`);
  const bar = part("planning").querySelector("progress");
  const said = part("planning").querySelector("[role=status]");
  const stop = part("planning").querySelector("button");

  const say = (words = "") => {
    part("problem").textContent = words;
    part("problem").hidden = !words;
  };

  const show = (report) => {
    if (report.runs !== undefined) {
      bar.value = report.runs;
      said.textContent = `${report.runs} of ${bar.max} campaigns simulated`;
    }
    if (report.error) say(report.error.message);
    if (report.found) {
      part("found").innerHTML = report.found;
      inTheReadersZone(part("found"));
    }
    return report.found || report.error;
  };

  // The lines of a reply as they come; whether the last of them was an end.
  const read = async (reply) => {
    const pieces = reply.body.getReader();
    const decoder = new TextDecoder();
    let over = false;
    for (let rest = "", piece = await pieces.read(); !piece.done; piece = await pieces.read()) {
      const lines = (rest + decoder.decode(piece.value, { stream: true })).split("\n");
      rest = lines.pop();
      for (const line of lines) over = show(JSON.parse(line)) || over;
    }
    return over;
  };

  plan.addEventListener("submit", async (event) => {
    event.preventDefault();
    const address = `${location.pathname}?${new URLSearchParams(new FormData(plan))}`;
    const leaving = new AbortController();
    // Columns that a refusal proposes, where none was named.
  const propose = (columns) => {
    for (const [name, column] of Object.entries(columns ?? {})) {
      const field = form.elements[name];
      if (field && !field.value) field.value = column;
    }
    if (columns) part("answer-options").open = true;
  };

  const busy = (is) => {
      part("planning").hidden = !is;
      plan.querySelector("button").disabled = is;
    };
    stop.onclick = () => leaving.abort();
    say();
    part("found").replaceChildren();
    bar.removeAttribute("value");
    said.textContent = "Waiting for a free moment …";
    busy(true);
    try {
      const reply = await fetch(address, { headers: { "x-easel": "fetch", accept: "application/json" }, signal: leaving.signal });
      if (!reply.ok) say((await reply.json()).error.message);
      else if (!await read(reply)) say("Planning broke off. Nothing has changed; try again.");
      history.replaceState(null, "", address);
    } catch {
      say(leaving.signal.aborted ? "Stopped. Nothing has changed." : "The connection was lost. Nothing has changed; try again.");
    } finally {
      busy(false);
    }
  });
}
