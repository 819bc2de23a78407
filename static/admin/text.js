// Text of a page that scripts keep up to date.

/** Set an element's text only if it differs, so that nothing flickers and no selection is lost. Return whether it did. */
export function setText(element, text) {
  if (element.textContent === text) return false;
  element.textContent = text;
  return true;
}
