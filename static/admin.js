// Researchers' pages work without this file; it brings the current tab into view, adds copy buttons, times in the
// reader's zone, a warning before unsaved settings are left, and a picture of the HIT that follows the form.

// On a phone the tabs go on beyond the edge, and the current one may lie there.
document.querySelector(".tabs [aria-current]")?.scrollIntoView({ inline: "nearest", block: "nearest" });

for (const time of document.querySelectorAll("time[datetime]")) {
  const moment = new Date(time.dateTime);
  time.title = time.textContent;
  time.textContent = moment.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

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

// Windows in small: each as wide as there is room for.
for (const small of document.querySelectorAll(".window")) {
  const fit = () => small.style.setProperty("--scale", Math.min(1, small.clientWidth / small.dataset.width));
  new ResizeObserver(fit).observe(small);
}

// The settings form: what was changed and not saved is said beside the button, and asked about before the page is left.
const settings = document.querySelector("form.settings");
if (settings) {
  const fields = [...settings.elements].filter((field) => field.name && field.type !== "hidden");
  const chosen = (select) => [...select.options].findIndex((option) => option.defaultSelected);
  const changed = (field) => {
    if (field.type === "checkbox") return field.checked !== field.defaultChecked;
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

  const picture = () => {
    for (const part of settings.querySelectorAll("[data-shows]")) {
      part.textContent = settings.elements[part.dataset.shows].value.trim() || (part.dataset.empty ?? "");
    }
    const rows = Number(settings.elements.items_per_hit.value);
    if (rows >= 2 && rows <= 10) settings.querySelectorAll(".miniature li").forEach((row, i) => { row.hidden = i >= rows; });
  };

  // Fields that the chosen way of asking does not read are left out; what is usual for it is chosen anew.
  // What was chosen for another one is there again when it is. Of what is hidden, only what could not be sent stays behind.
  const { design } = settings.elements;
  const usual = ["items_per_hit", "update_law", "prior"].map((name) => settings.elements[name]);
  const chosenFor = {};
  let before = design?.value;
  const fit = () => {
    for (const field of settings.querySelectorAll("[data-designs]")) {
      field.hidden = !field.dataset.designs.split(" ").includes(design.value);
      if (field instanceof HTMLOptionElement) field.disabled = field.hidden;
      for (const control of field.querySelectorAll("input, select, textarea")) {
        control.disabled = false;
        control.disabled = field.hidden && !control.checkValidity();
      }
    }
    for (const select of settings.querySelectorAll("select")) {
      if (select.selectedOptions[0]?.disabled) select.selectedIndex = [...select.options].findIndex((option) => !option.disabled);
    }
  };
  design?.addEventListener("change", () => {
    chosenFor[before] = usual.map(({ value }) => value);
    before = design.value;
    usual.forEach((control, place) => { control.value = chosenFor[before]?.[place] ?? ""; });
    fit();
  });
  if (design) fit();

  settings.addEventListener("input", () => { tell(); picture(); });
  settings.addEventListener("submit", () => { leaving = true; });
  addEventListener("pageshow", () => { leaving = false; tell(); picture(); });
  addEventListener("beforeunload", (event) => { if (!leaving && unsaved()) event.preventDefault(); });
}

// The upload forms: items are shown before they are imported; of items and responses it is said how far the import is.
for (const form of document.querySelectorAll("form[data-upload]")) {
  const part = (name) => form.querySelector(`[data-${name}]`);
  const file = form.elements.file;
  const preview = part("preview");
  const plain = preview?.innerHTML;
  const what = form.dataset.upload;
  const tooLarge = () => file.files[0]?.size > form.dataset.maxMb * 2 ** 20;

  const say = (message) => {
    part("problem").textContent = message ?? "";
    part("problem").hidden = !message;
  };

  const show = (words, share) => {
    part("progress").hidden = words === null;
    form.querySelector("#progress-words").textContent = words ?? "";
    const bar = part("progress").querySelector("progress");
    if (share === undefined) bar.removeAttribute("value"); else bar.value = share;
  };

  const busy = (is) => { form.querySelector("button").disabled = is; };

  const refuseLarge = () => say(`This file has more than ${form.dataset.maxMb} MB. Nothing was sent; split it, or ask the operator to raise the limit.`);

  file.addEventListener("change", async () => {
    say();
    if (preview) preview.innerHTML = plain;
    if (!file.files.length) return;
    if (tooLarge()) { refuseLarge(); return; }
    if (!preview) return;
    const chosen = file.files[0];
    const body = new FormData();
    body.append("file", chosen);
    const headers = { "x-csrf-token": form.elements.csrf.value, accept: "application/json" };
    show("Reading the file …");
    try {
      const reply = await fetch(`${form.getAttribute("action")}/preview`, { method: "POST", body, headers });
      if (chosen !== file.files[0]) return;
      if (reply.ok) preview.innerHTML = await reply.text();
      else say((await reply.json()).error.message);
    } catch {
      say("The file could not be sent. Nothing was imported; check the connection and choose it again.");
    } finally {
      show(null);
    }
  });

  form.addEventListener("input", (event) => {
    if (event.target.name === "template" && form.elements.show_by) form.elements.show_by.value = "template";
    if (event.target.name === "shown" && form.elements.show_by) form.elements.show_by.value = "shown";
  });

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    say();
    if (tooLarge()) { refuseLarge(); return; }
    const request = new XMLHttpRequest();
    const rows = Number(preview?.querySelector("[data-rows]")?.dataset.rows ?? 0);
    const failed = () => {
      busy(false);
      show(null);
      say(what === "items" ? "The connection was lost. Either all items were imported or none: reload this page to see."
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
