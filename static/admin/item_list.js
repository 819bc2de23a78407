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

// A link to the folded form opens it.
const addForm = document.getElementById("add");
const openAddForm = () => { if (location.hash === "#add" && addForm) addForm.open = true; };
window.addEventListener("hashchange", openAddForm);
for (const link of document.querySelectorAll("a[href='#add']")) link.addEventListener("click", () => { if (addForm) addForm.open = true; });
openAddForm();
