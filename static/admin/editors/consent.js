// Editor of the consent text: a template whose blanks are filled in, and a preview that the server renders. The text field
// keeps the only copy of the text.

import { fetchPart } from "../parts.js";
import { button, element, labelled, writeText } from "./elements.js";

const PREVIEW_DELAY_MS = 400;
// Each blank: its name, its label, and what the text says if it is left open.
const BLANKS = [
  ["institution", "Institution", "[institution]"],
  ["purpose", "What you want to find out", "[such as: how people judge the tone of sentences]"],
  ["duration", "Minutes it takes", "[number]"],
  ["pay", "Pay", "[amount]"],
  ["data", "Data that is kept", "your answers and how long they took, without your name"],
  ["contact", "Contact", "[name and address]"],
];

const field = document.querySelector("textarea#consent");
if (field) {
  field.after(drawTemplate(field), drawPreview(field));
}

/** Return the Markdown of the template. */
function fillTemplate({ institution, purpose, duration, pay, data, contact }) {
  return `## About this study

This study is run by ${institution}. We want to find out ${purpose}.

- **Time:** about ${duration} minutes.
- **Pay:** ${pay}.
- **Data:** we keep ${data}.
- **Taking part is voluntary.** You may stop at any time, without giving a reason.

If you have questions or want your answers to be deleted, contact ${contact}.

By agreeing, you say that you have read this text and want to take part.
`;
}

function drawTemplate(text) {
  const inputs = BLANKS.map(([name, , fallback]) => [name, element("input", { type: "text", placeholder: fallback })]);
  const news = element("p");
  news.setAttribute("role", "status");
  const write = () => {
    const former = text.value;
    const values = inputs.map(([name, input]) => [name, input.value.trim() || input.placeholder]);
    writeText(text, fillTemplate(Object.fromEntries(values)).trim());
    news.replaceChildren("The template is in the text field. Change it as you like. ");
    if (!former.trim()) return;
    news.append(button("Undo", () => {
      writeText(text, former);
      news.replaceChildren("Your former text is back.");
      text.focus();
    }));
  };
  const fields = element("div", { className: "blanks" }, ...BLANKS.map(([, label], place) => labelled(label, inputs[place][1])));
  // Enter writes the text, rather than saving the form.
  fields.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    write();
  });
  return element("details", { className: "editor" },
    element("summary", { textContent: "Start from a template" }), fields,
    element("p", {}, button("Write the text", write, { className: "" })), news);
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
    const response = await sendText(text);
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

/** Send the text to the server. Return its response, or undefined if the connection fails. */
async function sendText(text) {
  const body = new URLSearchParams({ csrf: text.form.elements.csrf.value, consent: text.value });
  try {
    return await fetchPart("../try/consent", { method: "POST", body });
  } catch {
    return undefined;
  }
}
