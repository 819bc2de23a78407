// The list of items: its ticks, and links to folded forms.

import { manageChoice } from "./choice.js";

for (const form of document.querySelectorAll("form[data-chosen]")) if (form.querySelector("[data-count]")) manageChoice(form);

// A link to a folded form opens it.
for (const folded of document.querySelectorAll("details#add, details#gold")) {
  const hash = `#${folded.id}`;
  const openIfLinked = () => { if (location.hash === hash) folded.open = true; };
  window.addEventListener("hashchange", openIfLinked);
  for (const link of document.querySelectorAll(`a[href='${hash}']`)) link.addEventListener("click", () => { folded.open = true; });
  openIfLinked();
}
