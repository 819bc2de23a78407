// The form that starts a rehearsal warns of too few annotators for what the campaign wants.

for (const warning of document.querySelectorAll("[data-fewest]")) {
  const { annotators } = warning.closest("form").elements;
  const update = () => { warning.hidden = annotators.valueAsNumber >= warning.dataset.fewest; };
  annotators.addEventListener("input", update);
  update();  // a browser may have kept another number
}
