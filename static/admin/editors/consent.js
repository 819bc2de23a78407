// Editor of the consent text: a text from the settings, and a preview, both made by the server. The text field keeps the
// only copy of the text.

import { fetchPart, newestRequest } from "../parts.js";
import { button, element, writeText } from "./elements.js";

const PREVIEW_DELAY_MS = 400;

const field = document.querySelector("textarea#consent");
if (field) {
  field.after(drawTemplate(field), drawPreview(field));
}

/** Return a button that writes a text from the settings as they are entered, and takes that back.
 *
 * A text that is still as written follows later changes of the settings by itself. For any other text, a line at the
 * changed field says that the text does not name the change yet.
 */
function drawTemplate(text) {
  const [news, line] = [element("p"), element("p", { className: "aside" })];   // at the text; at the changed field
  for (const one of [news, line]) one.setAttribute("role", "status");
  const warnings = document.querySelector("#consent-notes");                  // about the saved text
  const startRequest = newestRequest();
  let drafted;                                                                // promise of the newest text that was drafted
  let former = "";
  let timer;

  const undoButton = () => button("Undo", () => {
    writeText(text, former);
    warnings?.toggleAttribute("hidden", false);
    news.replaceChildren("Your former text is back.");
    line.replaceChildren("The former consent text is back. It does not say this.");
    text.focus();
  });
  const replaceText = (written) => {
    writeText(text, written);
    drafted = Promise.resolve(written);
    warnings?.toggleAttribute("hidden", true);
    line.remove();
    const blanks = /\[[^\]\n]+\](?!\()/.test(written) ? "Fill in what is in [brackets], and change it as you like. " : "Change it as you like. ";
    news.replaceChildren(`The text is in the field. ${blanks}`);
    if (written.includes("no fixed end")) {
      const days = element("a", { href: "#identifiers_days", textContent: "Say how long they are kept" });
      days.addEventListener("click", openFoldOfTarget);
      news.append("It says “no fixed end”: no time limit is set for personal data, which an ethics board may refuse. ", days, ". ");
    }
    if (isPayMissing(text.form)) {
      const shown = document.querySelector("#person_reward")?.offsetParent ? "person_reward" : "pay_per_hit";
      news.append(element("a", { href: `#${shown}`, textContent: "Fill in Pay first" }), "; the text follows. ");
    }
    if (former.trim()) news.append(undoButton());
  };
  const write = async () => {
    const [before, written] = [text.value, await draftText(text.form)];
    if (written === undefined) {
      news.replaceChildren("The text could not be written. Try again.");
      return;
    }
    former = before;
    replaceText(written);
  };
  const follow = async (field) => {
    const isNewest = startRequest();
    const [before, written] = await Promise.all([drafted, draftText(text.form)]);
    if (!isNewest() || !before || !written || written === before) return;
    drafted = Promise.resolve(written);
    if (text.value.trim() === before) {
      if (!line.isConnected) former = text.value;                             // of several changes, Undo takes back all
      replaceText(written);
      line.replaceChildren("The consent text now says this. ", undoButton());
    } else if (lacksNewWords(text.value, before, written)) {
      line.replaceChildren("The consent text does not say this yet. ", button("Write it again", write));
    } else return line.remove();
    field.closest(".entry")?.append(line);
  };
  text.form.addEventListener("focusin", () => { drafted ??= draftText(text.form); });
  text.form.addEventListener("input", ({ target }) => {
    if (target === text || !text.value.trim()) return;
    clearTimeout(timer);
    timer = setTimeout(follow, PREVIEW_DELAY_MS, target);
  });
  const hint = element("p", { className: "aside", textContent: "It uses your entries: the ones above, how long data is kept, the time and the pay." });
  return element("div", { className: "editor" }, element("p", {}, button("Write a text from the settings", write, { className: "" })), hint, news);
}

/** Return the consent text that the settings give as they are entered; undefined if the server cannot be reached. */
async function draftText(form) {
  const response = await postForm("../try/consent-text", new URLSearchParams(new FormData(form)));
  return response?.ok ? (await response.text()).trim() : undefined;
}

/** Return whether a text lacks a word or number that a newly drafted text has and the one drafted before had not. */
function lacksNewWords(text, before, written) {
  const wordsOf = (value) => new Set(value.match(/[\p{L}\p{N}.@]+/gu));
  const [present, old] = [wordsOf(text), wordsOf(before)];
  return [...wordsOf(written)].some((word) => !old.has(word) && !present.has(word));
}

/** Return whether the form has neither an amount nor own words for the pay. */
function isPayMissing({ elements }) {
  return !["person_reward", "pay_per_hit", "pay"].some((name) => elements[name]?.value.trim());
}

/** Open the fold that has the target of a link, so that the browser can go there. */
function openFoldOfTarget(event) {
  const fold = document.querySelector(event.currentTarget.hash)?.closest("details");
  if (fold) fold.open = true;
}

/** Return a preview that follows the text field while it is open. */
function drawPreview(text) {
  const prose = element("div", { className: "prose", dir: "auto", tabIndex: 0 });
  prose.setAttribute("role", "region");
  prose.setAttribute("aria-label", "Preview of the consent text");
  const preview = element("details", { className: "consent-preview" }, element("summary", { textContent: "Preview" }), prose);
  let timer;
  let shown = "";
  const update = async () => {
    const { value } = text;
    if (!preview.open || value === shown) return;
    const body = new URLSearchParams({ csrf: text.form.elements.csrf.value, consent: text.value });
    const response = await postForm("../try/consent", body);
    if (value !== text.value) return;                                         // a newer request is on its way
    if (response?.ok) {
      prose.innerHTML = await response.text();
      shown = value;
    } else {
      prose.textContent = "The preview could not be loaded. Your text is still in the field above.";
    }
  };
  text.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(update, PREVIEW_DELAY_MS);
  });
  preview.addEventListener("toggle", update);
  return preview;
}

/** Send values to the server. Return its response, or undefined if the connection fails. */
async function postForm(address, body) {
  try {
    return await fetchPart(address, { method: "POST", body });
  } catch {
    return undefined;
  }
}
