// Elements of the editors that stand in for a text field. The text field keeps the only copy of what is entered.

/** Return a new element with properties, and with children in it. */
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** Return a button that submits nothing. */
export function button(label, onClick, properties = {}) {
  const made = element("button", { type: "button", className: "quiet", textContent: label, ...properties });
  made.addEventListener("click", onClick);
  return made;
}

/** Return a button that shows a sign only, named for screen readers. */
export function signButton(sign, name, onClick, properties = {}) {
  const made = button(sign, onClick, { title: name, ...properties });
  made.setAttribute("aria-label", name);
  return made;
}

/** Put a text into the text field, as if it had been typed, so that the form knows that it has changed. */
export function writeText(field, text) {
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

/** Redraw the cards when a browser has put back another text; else the card that is being filled in keeps its focus. */
export function redrawWhenRestored(field, redraw) {
  let entered = field.value;
  field.addEventListener("input", () => { entered = field.value; });
  addEventListener("pageshow", () => { if (field.value !== entered) redraw(); });
}

/** Show the editor instead of its text field and the hints on the text's format, or these instead of the editor. */
export function showEditor(editor, text, isShown) {
  editor.hidden = !isShown;
  for (const ofText of [text, ...["hint", "format"].map((part) => document.getElementById(`${text.id}-${part}`))]) ofText?.toggleAttribute("hidden", isShown);
}

/** Return a control below its label. */
export function labelled(label, control) {
  return element("label", { className: "labelled" }, element("span", { textContent: label }), control);
}
