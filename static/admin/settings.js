// The settings form: it warns of unsaved changes, follows the chosen way of asking, and shows what annotators will see.

const form = document.querySelector("form.settings");
if (form) warnOfUnsavedChanges(form);
for (const criteria of document.querySelectorAll("details.criteria")) manageCriteria(criteria);
// A launched campaign has no such frame, and its way of asking is fixed.
if (form?.querySelector("iframe[name=seen]")) followDraft(form);

/** Show beside the button that changes are not saved, and ask before the page is left with them. */
function warnOfUnsavedChanges(settings) {
  const fields = [...settings.elements].filter(
    (field) => field.name && field.type !== "hidden" && !(field instanceof HTMLFieldSetElement));
  const isChanged = (field) => {
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (!(field instanceof HTMLSelectElement)) return field.value !== field.defaultValue;
    return field.selectedIndex !== Math.max(0, [...field.options].findIndex((option) => option.defaultSelected));
  };
  const hasUnsavedChanges = () => "unsaved" in settings.dataset || fields.some(isChanged);
  const line = settings.querySelector(".unsaved");
  let isSubmitting = false;

  const update = () => {
    const text = hasUnsavedChanges() ? "Not saved yet" : "";
    if (line.textContent !== text) line.textContent = text;
  };

  settings.addEventListener("input", update);
  settings.addEventListener("submit", () => { isSubmitting = true; });
  addEventListener("pageshow", () => { isSubmitting = false; update(); });
  addEventListener("beforeunload", (event) => { if (!isSubmitting && hasUnsavedChanges()) event.preventDefault(); });
}

/** Show the criteria that are filled in, and at least two; add and remove others on request. */
function manageCriteria(criteria) {
  const fieldsets = [...criteria.querySelectorAll("fieldset.criterion")];
  const addButton = criteria.querySelector("[data-add]");
  const fieldsOf = (fieldset) => [...fieldset.querySelectorAll("input, textarea")];
  const isEmpty = (fieldset) => fieldsOf(fieldset).every(({ value }) => !value);
  const updateAddButton = () => { addButton.parentElement.hidden = fieldsets.every(({ hidden }) => !hidden); };
  const shownCount = Math.max(2, ...fieldsets.map((fieldset, i) => (isEmpty(fieldset) ? 0 : i + 1)));
  fieldsets.forEach((fieldset, i) => {
    const removeButton = fieldset.querySelector("[data-remove]");
    fieldset.hidden = i >= shownCount;
    removeButton.parentElement.hidden = false;
    removeButton.addEventListener("click", () => {
      for (const field of fieldsOf(fieldset)) field.value = "";
      fieldset.hidden = true;
      updateAddButton();
      addButton.focus();
      addButton.dispatchEvent(new Event("input", { bubbles: true }));      // the form has changed
    });
  });
  addButton.addEventListener("click", () => {
    const fieldset = fieldsets.find(({ hidden }) => hidden);
    fieldset.hidden = false;
    updateAddButton();
    fieldsOf(fieldset)[0].focus();
  });
  updateAddButton();
}

/** Show only fields that the chosen way of asking and update law read, offer rules, and keep the preview up to date. */
function followDraft(draft) {
  const { design, update_law: updateLaw, goal, rule } = draft.elements;
  const chosenLaw = () => updateLaw.value || draft.querySelector("[name=design]:checked").dataset.law;
  const includes = (names, name) => !names || names.split(" ").includes(name);

  // Hidden fields keep their values, unless these could not be sent.
  const showFittingFields = () => {
    const law = chosenLaw();
    for (const field of draft.querySelectorAll("[data-designs], [data-laws]")) {
      field.hidden = !includes(field.dataset.designs, design.value) || !includes(field.dataset.laws, law);
      if (field instanceof HTMLOptionElement) field.disabled = field.hidden;
      for (const control of field.querySelectorAll("input, select, textarea")) {
        control.disabled = false;
        control.disabled = field.hidden && !control.checkValidity();
      }
    }
    for (const select of draft.querySelectorAll("select")) {
      if (select.selectedOptions[0]?.disabled) select.selectedIndex = [...select.options].findIndex((option) => !option.disabled);
    }
  };

  // With a goal, offer the selection rule that suits it, if the update law allows that rule.
  const offers = [...draft.querySelectorAll("[data-rule]")];
  const showOffers = () => {
    const law = chosenLaw();
    for (const offer of offers) {
      const { goal: offeredGoal, rule: offeredRule, laws } = offer.dataset;
      const isPossible = includes(laws, law) && !rule.querySelector(`[value=${offeredRule}]`).disabled;
      offer.hidden = !isPossible || goal.value !== offeredGoal || rule.value === offeredRule;
    }
  };
  for (const offer of offers) {
    const button = offer.querySelector("button");
    button.hidden = false;
    button.addEventListener("click", () => {
      rule.value = offer.dataset.rule;
      rule.dispatchEvent(new Event("change", { bubbles: true }));
      rule.focus();
    });
  }

  // The frame shows the page for what the form says, soon after the last key. `replace` lets Back still leave this page.
  const frame = draft.querySelector("iframe[name=seen]");
  const previewAddress = () => {
    const query = new URLSearchParams();
    for (const field of draft.querySelectorAll("[data-seen] :is(input, textarea, select)")) {
      if (field.disabled || !field.value || (/checkbox|radio/.test(field.type) && !field.checked)) continue;
      if (field.closest("[data-designs]")?.hidden) continue;
      query.set(field.name, field.value.slice(0, frame.dataset.longest));
    }
    return `${frame.src.split("?")[0]}?${query}`;
  };
  let shownAddress = frame.src;
  let timer;
  const updatePreview = (delay = 300) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (previewAddress() === shownAddress) return;
      shownAddress = previewAddress();
      frame.contentWindow.location.replace(shownAddress);
    }, delay);
  };

  // Another way of asking brings its own usual values; those entered for the former one return with it.
  const dependentFields = ["items_per_hit", "update_law", "prior"].map((name) => draft.elements[name]);
  const valuesByDesign = {};
  let formerDesign = design.value;
  draft.addEventListener("change", ({ target }) => {
    if (target.name === "design") {
      valuesByDesign[formerDesign] = dependentFields.map(({ value }) => value);
      formerDesign = design.value;
      dependentFields.forEach((control, i) => { control.value = valuesByDesign[formerDesign]?.[i] ?? ""; });
    }
    if (target.name === "design" || target === updateLaw) showFittingFields();
    showOffers();
    updatePreview(0);
  });
  draft.addEventListener("input", () => updatePreview());
  addEventListener("pageshow", () => { showFittingFields(); showOffers(); updatePreview(0); });
  showFittingFields();
  showOffers();
}
