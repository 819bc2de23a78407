// The upload forms: items are previewed before they are imported, and imports show their progress.

import { newestRequest, parsePart } from "./parts.js";
import { zipDirectory } from "./zip_directory.js";

const FILE_CHANGED = "The file was changed or moved after you chose it. Choose it again.";

/** Return whether the browser can still read a chosen file; it cannot once the file has changed on the disk. */
const isReadable = async (file) => !file || file.slice(0, 1).arrayBuffer().then(() => true, () => false);

for (const form of document.querySelectorAll("form[data-upload]")) manageUpload(form);

function manageUpload(form) {
  const find = (name) => form.querySelector(`[data-${name}]`);
  const { file: fileField, pasted: pastedField, read_as: readAs } = form.elements;
  const removeButton = find("remove-file");
  const action = form.getAttribute("action");
  const noun = form.dataset.upload;
  const preview = find("preview");
  const emptyPreview = preview?.innerHTML;
  const button = form.querySelector("button:not([formaction], [type=button])");
  const buttonLabel = button.textContent;
  const headers = { "x-csrf-token": form.elements.csrf.value, "x-easel": "fetch", accept: "application/json" };

  const previewedTable = () => preview?.querySelector("[data-rows]");
  const previewedRows = () => previewedTable()?.dataset.rows;
  const hasTable = () => Boolean(fileField.files.length || pastedField?.value.trim());
  const hasItems = () => hasTable() || Boolean(pastedField && form.elements.media?.files.length); // each file of a zip is an item
  const isTooLarge = () => fileField.files[0]?.size > form.dataset.maxMb * 2 ** 20;

  /** Show a problem, or none. A preview does not claim that all is well while there is one. */
  const showProblem = (message = "") => {
    find("problem").textContent = message;
    find("problem").hidden = !message;
    const success = preview?.querySelector(".fine");
    if (success) success.hidden = Boolean(message);
  };
  const refuseLargeFile = () =>
    showProblem(`This file is larger than ${form.dataset.maxMb} MB. Nothing was sent. Split it, or ask the operator to raise the limit.`);

  /** Show the text and the share of the progress; null hides it, and no share means an unknown one. */
  const showProgress = (text, share) => {
    const bar = find("progress").querySelector("progress");
    find("progress").hidden = text === null;
    find("progress").querySelector("[role=status]").textContent = text ?? "";
    if (share === undefined) bar.removeAttribute("value"); else bar.value = share;
  };

  /** Show the field for a zip as soon as the items are to be shown as media. */
  const openMediaField = () => {
    if (form.elements.show_as?.checked) form.elements.media?.closest("details")?.setAttribute("open", "");
  };

  /** Return a label such as "Import 20 items and 1 check" of "Import items". */
  const labelWithCounts = (label, rows) => {
    const [verb, ...nouns] = label.split(" ");
    const checks = Number(previewedTable().dataset.checks ?? 0);
    const counted = (count, words) => `${count.toLocaleString()} ${count === 1 ? words.replace(/s$/, "") : words}`;
    const parts = [rows > checks && counted(rows - checks, nouns.join(" ")), checks && counted(checks, "checks")];
    return `${verb} ${parts.filter(Boolean).join(" and ")}`;
  };

  /** Write on the button how much it imports; it is off while an import would be refused. */
  const updateButton = () => {
    const rows = previewedRows();
    const label = previewedTable()?.dataset.noun ? buttonLabel.replace("items", previewedTable().dataset.noun) : buttonLabel;
    button.disabled = Boolean(preview?.querySelector("[role=alert]"));
    button.textContent = rows && !button.disabled ? labelWithCounts(label, Number(rows)) : buttonLabel;
  };

  /** Enter the columns that a refusal proposes into the fields that are empty, and return whether there were any. */
  const enterProposal = (columnByField) => {
    const emptyFields = Object.keys(columnByField ?? {}).filter((name) => form.elements[name]?.value === "");
    for (const name of emptyFields) form.elements[name].value = columnByField[name];
    if (columnByField) find("answer-options").open = true;
    return emptyFields.length > 0;
  };

  /** Return the form data for a preview, with only the directory of the zip of media. */
  const withZipDirectory = async (body) => {
    const zip = form.elements.media?.files[0];
    body.delete("media");
    const directory = zip && await zipDirectory(zip).catch(() => null); // null if the zip was changed since it was chosen
    if (directory) body.append("media", directory, zip.name);
    if (form.elements.skip_unnamed?.checked) body.set("skip_unnamed", "on");
    return body;
  };

  const startPreview = newestRequest();

  /** Let the server read the file, and pass the HTML that describes it to `put`, unless a later choice has overtaken it. */
  const fetchPreview = async (body, put) => {
    const isNewest = startPreview();
    showProgress("Reading the file …");
    try {
      const reply = await fetch(`${action}/preview`, { method: "POST", body, headers });
      const text = await reply.text();
      if (!isNewest()) return;
      if (reply.ok) put(text);
      else {
        const { error } = JSON.parse(text);
        if (noun === "responses") preview.innerHTML = "";
        showProblem(error.message);
        updateButton();
        if (enterProposal(error.details?.proposal)) previewFile();
      }
    } catch {
      const problem = await isReadable(fileField.files[0])
        ? "The file could not be sent. Check the connection and choose it again." : FILE_CHANGED;
      if (isNewest()) showProblem(problem);
    } finally {
      if (isNewest()) showProgress(null);
    }
  };

  let previewedFile;
  const previewFile = async () => {
    [previewedFile] = fileField.files;
    showProblem();
    startPreview(); // overtakes the preview of the former file
    showProgress(null);
    if (preview) preview.innerHTML = emptyPreview;
    updateButton();
    if (removeButton) removeButton.hidden = !previewedFile;
    // Of a file and pasted text only the file is read.
    const pasteField = pastedField?.closest(".field");
    if (pasteField) pasteField.hidden = Boolean(previewedFile);
    if (!hasItems()) return;
    if (isTooLarge()) { refuseLargeFile(); return; }
    if (!preview) return;
    const body = noun === "responses" ? new FormData(form) : new FormData();  // answers: the file and its options
    if (noun !== "responses") {
      if (previewedFile) body.append("file", previewedFile);
      else if (hasTable()) body.append("pasted", pastedField.value);
      if (readAs) body.append("read_as", readAs.value);
    }
    if (form.elements.replace?.checked) body.append("replace", "on");
    await fetchPreview(await withZipDirectory(body), (html) => {
      preview.innerHTML = html;
      updateButton();
      if (previewedFile) preview.scrollIntoView({ block: "nearest" });
    });
  };
  fileField.addEventListener("change", previewFile);
  readAs?.addEventListener("change", previewFile);
  pastedField?.addEventListener("change", () => { if (!fileField.files.length) previewFile(); });
  pastedField?.addEventListener("paste", () => setTimeout(() => { if (!fileField.files.length) previewFile(); }));
  // The pasted text is still in its field, and counts again.
  removeButton?.addEventListener("click", () => {
    fileField.value = "";
    previewFile();
    fileField.focus();
  });
  preview?.addEventListener("click", (event) => {
    const offer = event.target.closest("[data-read-as]");
    if (!offer) return;
    event.preventDefault();
    readAs.value = offer.value;
    readAs.focus();
    previewFile();
  });
  // Choosing the same file again, perhaps after correcting it, is no change for Chromium: it sends `cancel` with a new file.
  fileField.addEventListener("cancel", () => { if (fileField.files[0] !== previewedFile) previewFile(); });

  form.addEventListener("input", ({ target }) => {
    if (["template", "shown"].includes(target.name) && form.elements.show_by) form.elements.show_by.value = target.name;
  });

  // Other columns: the controls stay, and what depends on them is replaced.
  form.addEventListener("change", async ({ target }) => {
    const dependentPart = preview?.querySelector("[data-checked]");
    const changesAll = target.closest?.("[data-refresh]");
    if (["media", "skip_unnamed"].includes(target.name)) showProblem(); // it may be another zip
    if (target.name === "media" && !hasTable()) { previewFile(); return; }
    const choosesTable = [fileField, pastedField, readAs].includes(target);
    if (choosesTable || !(dependentPart || changesAll) || !hasItems()) return;
    showProblem();
    fetchPreview(await withZipDirectory(new FormData(form)), (html) => {
      if (changesAll || !html.includes("data-checked")) {
        preview.innerHTML = html;
        (preview.querySelector(`#${target.id}`) ?? preview.querySelector(`[name="${target.name}"]`))?.focus();
      } else {
        dependentPart.replaceWith(parsePart(html).querySelector("[data-checked]"));
      }
      updateButton();
      openMediaField();
    });
  });

  const dropZone = find("drop");
  if (dropZone) takeDroppedFiles(dropZone, fileField);

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    showProblem();
    if (isTooLarge()) { refuseLargeFile(); return; }
    const rows = Number(previewedRows() ?? 0);
    const request = new XMLHttpRequest();
    const stop = (message) => {
      button.disabled = false;
      showProgress(null);
      showProblem(message);
    };
    const showLostConnection = async () => {
      const consequence = noun === "items" ? "Either all items were imported or none. Reload this page to check."
        : "Rows that were already imported are kept. Import the same file again to add the others.";
      stop(await isReadable(fileField.files[0]) ? `The connection was lost. ${consequence}` : `${FILE_CHANGED} Nothing was imported.`);
    };
    /** Show the last complete line of the reply, and return it. */
    const showLastReport = () => {
      const line = request.responseText.trimEnd().split("\n").at(-1);
      if (!line || !request.responseText.endsWith("\n")) return null;
      const report = JSON.parse(line);
      const total = rows ? `of ${rows.toLocaleString()} ` : "";
      if (report.rows) showProgress(`${report.rows.toLocaleString()} ${total}${noun} imported`, rows ? report.rows / rows : undefined);
      return report;
    };
    request.upload.onprogress = (sent) => showProgress("Sending the file …", sent.loaded / sent.total);
    request.upload.onload = () => showProgress("Importing …");
    request.onprogress = () => { if (request.status === 200) showLastReport(); };
    request.onerror = showLostConnection;
    request.onload = () => {
      if (request.status !== 200) { stop(JSON.parse(request.responseText).error.message); return; }
      const report = showLastReport();
      if (report?.done) { location.assign(report.done); return; }
      if (!report?.error) { showLostConnection(); return; }
      stop(report.error.message);
      enterProposal(report.error.proposal);
    };
    request.open("POST", action);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    button.disabled = true;
    showProgress("Sending the file …", 0);
    request.send(new FormData(form));
  });
}

/** Put a file that is dropped anywhere on the page into the field; elsewhere the browser would open it instead. */
function takeDroppedFiles(dropZone, fileField) {
  dropZone.querySelector(".invitation").hidden = false;
  const highlight = (isOver) => dropZone.classList.toggle("over", isOver);
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", (event) => { if (hasFiles(event)) { event.preventDefault(); highlight(true); } });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) highlight(false); });
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    highlight(false);
    fileField.files = event.dataTransfer.files;
    fileField.dispatchEvent(new Event("change", { bubbles: true }));
  });
}
