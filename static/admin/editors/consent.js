// Editor of the consent text: a text from the settings, and a preview, both made by the server. The text field keeps the
// only copy of the text.

import { fetchPart } from "../parts.js";
import { button, element, writeText } from "./elements.js";

const PREVIEW_DELAY_MS = 400;
const PAY_FIELDS = ["people_from", "person_reward", "person_tasks", "recruiting_minutes", "pay_per_hit", "pay", "currency", "minutes_per_hit"];

const field = document.querySelector("textarea#consent");
if (field) {
  field.after(drawTemplate(field), drawPreview(field));
}

/** Return a button that writes a text from the settings as they are entered, and takes that back. */
function drawTemplate(text) {
  const news = element("p");
  news.setAttribute("role", "status");
  const warnings = document.querySelector("#consent-notes");                  // about the saved text
  let hasWritten = false;
  const write = async () => {
    const former = text.value;
    const response = await postForm("../try/consent-text", new URLSearchParams(new FormData(text.form)));
    if (!response?.ok) {
      news.replaceChildren("The text could not be written. Try again.");
      return;
    }
    const written = (await response.text()).trim();
    writeText(text, written);
    warnings?.toggleAttribute("hidden", true);
    const blanks = /\[[^\]\n]+\](?!\()/.test(written) ? "Fill in what is in [brackets], and change it as you like. " : "Change it as you like. ";
    news.replaceChildren(`The text is in the field. ${blanks}`);
    if (written.includes("no fixed end")) {
      const days = element("a", { href: "#identifiers_days", textContent: "Say how long they are kept" });
      days.addEventListener("click", openFoldOfTarget);
      news.append("It says “no fixed end”: no time limit is set for personal data, which an ethics board may refuse. ", days, ". ");
    }
    if (isPayMissing(text.form)) {
      const shown = document.querySelector("#person_reward")?.offsetParent ? "person_reward" : "pay_per_hit";
      const pay = element("a", { href: `#${shown}`, textContent: "Fill in Pay first" });
      news.append(pay, ", then write the text again. ");
    }
    hasWritten = true;
    if (!former.trim()) return;
    news.append(button("Undo", () => {
      writeText(text, former);
      warnings?.toggleAttribute("hidden", false);
      news.replaceChildren("Your former text is back.");
      text.focus();
    }));
  };
  text.form.addEventListener("input", ({ target }) => {
    if (!hasWritten || !PAY_FIELDS.includes(target.name)) return;
    hasWritten = false;
    news.replaceChildren("The pay or the time has changed since. ", button("Write the text again", write));
  });
  const hint = element("p", { className: "aside", textContent: "It uses your entries: the ones above, how long data is kept, the time and the pay." });
  return element("div", { className: "editor" }, element("p", {}, button("Write a text from the settings", write, { className: "" })), hint, news);
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
