// The list of items: tick all of a page, see how many are ticked, and act only if some are.

for (const form of document.querySelectorAll("form[data-chosen]")) manageChoice(form);

function manageChoice(form) {
  const boxes = [...form.querySelectorAll("input[name=item]")];
  const allBox = form.querySelector("[data-all]");
  const count = form.querySelector("[data-count]");
  if (!allBox || !boxes.length) return;
  const update = () => {
    const ticked = boxes.filter((box) => box.checked).length;
    allBox.checked = ticked === boxes.length;
    allBox.indeterminate = ticked > 0 && ticked < boxes.length;
    count.textContent = ticked ? `${ticked} ticked` : "Tick items to change them.";
    for (const button of form.querySelectorAll("button[name=action]")) button.disabled = !ticked;
  };
  allBox.hidden = count.hidden = false;
  allBox.addEventListener("change", () => {
    for (const box of boxes) box.checked = allBox.checked;
    update();
  });
  form.addEventListener("change", update);
  window.addEventListener("pageshow", update); // the browser may restore ticks
  update();
}

// A link to a folded form opens it.
for (const folded of document.querySelectorAll("details#add, details#gold")) {
  const hash = `#${folded.id}`;
  const openIfLinked = () => { if (location.hash === hash) folded.open = true; };
  window.addEventListener("hashchange", openIfLinked);
  for (const link of document.querySelectorAll(`a[href='${hash}']`)) link.addEventListener("click", () => { folded.open = true; });
  openIfLinked();
}
