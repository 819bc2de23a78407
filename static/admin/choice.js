// Ticked rows of a list: tick all of a table, see how many are ticked, and act only if some are.

/** Manage the boxes of a form, which may be outside of it and may be replaced. */
export function manageChoice(form) {
  const count = form.querySelector("[data-count]");
  const boxes = () => [...form.elements].filter((box) => box.matches("input[type=checkbox][name]"));
  const boxesInTableOf = (all) => boxes().filter((box) => all.closest("table").contains(box));
  const update = () => {
    for (const all of [...form.elements].filter((box) => box.matches("[data-all]"))) {
      const own = boxesInTableOf(all);
      const ticked = own.filter((box) => box.checked).length;
      all.hidden = !own.length;
      all.checked = ticked > 0 && ticked === own.length;
      all.indeterminate = ticked > 0 && ticked < own.length;
    }
    const ticked = boxes().filter((box) => box.checked).length;
    count.hidden = false;
    count.textContent = ticked ? `${ticked} ticked` : form.dataset.chosen;
    for (const button of form.querySelectorAll("button[name=action]")) button.disabled = !ticked;
  };
  document.addEventListener("change", ({ target }) => {
    if (target.form !== form) return;
    if (target.matches("[data-all]")) for (const box of boxesInTableOf(target)) box.checked = target.checked;
    update();
  });
  window.addEventListener("pageshow", update); // the browser may restore ticks
  update();
  return update;
}
