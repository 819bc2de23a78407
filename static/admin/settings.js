// The form of a step of the settings: it warns of unsaved changes, follows the chosen way of asking and update law, shows
// what annotators will see, and lists the changes of a launched campaign before they are saved.

import { keepEntries } from "./kept_entries.js";
import { fetchPart, newestRequest, parsePart, replacePart } from "./parts.js";

const form = document.querySelector("form.settings");
if (form) warnOfUnsavedChanges(form);
if (form?.dataset.keptAs) keepEntries(form, isChanged);
for (const criteria of document.querySelectorAll("details.criteria")) manageCriteria(criteria);
// The way of asking of a launched campaign is fixed.
if (form && !form.matches(".launched")) followDraft(form);
for (const goal of form?.querySelectorAll("select:is([name=goal], [name$='.goal'])") ?? []) followGoal(goal);
const changeList = form?.querySelector(".changes");
if (changeList) listChanges(form, changeList);

if (form?.querySelector(".unsaved")) updateTotals(form);

const panelPresets = form?.querySelector("#panel-presets");
if (panelPresets) offerPresets(form, panelPresets);

const payRate = form?.querySelector(".pay-rate");
if (payRate) followPay(form, payRate);

/** Let each button fill in the settings of a panel. */
function offerPresets(settings, presets) {
  presets.hidden = false;
  for (const button of presets.querySelectorAll("[data-preset]")) {
    button.addEventListener("click", () => {
      settings.elements.panel_title.value = button.textContent;
      for (const [name, value] of Object.entries(JSON.parse(button.dataset.preset))) settings.elements[name].value = value;
      settings.dispatchEvent(new Event("input", { bubbles: true }));
      settings.elements.panel_query.focus();
    });
  }
}

/** Show what the campaign adds up to with the entered numbers, which the server computes, or why they cannot be saved. */
function updateTotals(settings) {
  const startRequest = newestRequest();
  let timer;
  const enteredNumbers = () => new URLSearchParams(editableFields(settings)
    .filter((field) => field.matches("select, [type=number], [type=checkbox], [type=radio], [inputmode]") && !field.disabled)
    .filter((field) => !/checkbox|radio/.test(field.type) || field.checked)
    .map(({ name, value }) => [name, value]));
  const showTotals = async () => {
    const isNewest = startRequest();
    const reply = await fetchPart(`${location.pathname}/totals?${enteredNumbers()}`).catch(() => null);
    if (!reply || !(reply.ok || reply.status === 422)) return;
    const part = parsePart(await reply.text());
    if (!isNewest()) return;
    showProblems(settings, part.querySelectorAll("[data-field]"));
    for (const id of ["totals", "task-size", "check-summary", "rules-note"]) {
      const [old, next] = [document, part].map((place) => place.querySelector(`#${id}`));
      if (old && next) replacePart(old, next);
    }
  };
  if (!document.querySelector("#totals")) return;       // there are no items yet
  settings.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(showTotals, 300);
  });
}

/** Show problems at their fields, in the place of earlier ones. */
function showProblems(settings, problems) {
  settings.querySelectorAll("[data-field]").forEach((old) => old.remove());
  for (const problem of problems) {
    document.getElementById(problem.id)?.remove();
    document.getElementById(problem.dataset.field)?.closest(".field")?.querySelector(".entry")?.append(problem);
  }
}

/** Show the pay per hour for what is entered, beside the least that platforms allow. */
function followPay(settings, rate) {
  const { people_from: way, person_reward: reward, person_tasks: personTasks } = settings.elements;
  const { pay_per_hit: pay, minutes_per_hit: minutes, recruiting_minutes: studyMinutes, currency } = settings.elements;
  const waysPaidPerPerson = rate.dataset.perPerson.split(" ");
  const minimums = Object.entries(JSON.parse(rate.dataset.minimums));
  const line = (text, isProblem) => {
    const paragraph = document.createElement("p");
    paragraph.textContent = text;
    paragraph.classList.toggle("problem", isProblem);
    return paragraph;
  };
  settings.addEventListener("input", () => {
    const isPerPerson = waysPaidPerPerson.includes(way?.value);
    const tasks = isPerPerson ? personTasks.valueAsNumber : Number(rate.dataset.tasks);
    const ofTask = isPerPerson ? reward.valueAsNumber / tasks : pay.valueAsNumber;
    const ofStudy = tasks && studyMinutes?.valueAsNumber;
    const hourly = isPerPerson && studyMinutes?.valueAsNumber
      ? (reward.valueAsNumber * 60) / studyMinutes.valueAsNumber
      : (ofTask * 60) / (ofStudy ? ofStudy / tasks : minutes.valueAsNumber);
    const money = (amount, decimals) => amount.toLocaleString("en", { style: "currency", currency: currency.value, maximumFractionDigits: decimals });
    rate.hidden = !(hourly > 0 && Number.isFinite(hourly));
    if (rate.hidden) return;
    const hasFourDecimals = Math.abs(ofTask - Math.round(ofTask * 1e4) / 1e4) < 1e-6; // else as the server rounds it
    const perTask = isPerPerson && ofTask > 0 && Number.isFinite(ofTask) ? `${money(ofTask, hasFourDecimals ? 4 : undefined)} a task and ` : "";
    rate.replaceChildren(line(`That is ${perTask}${money(hourly)} an hour.`, false));
    for (const [platform, { [currency.value]: minimum }] of minimums) {
      if (!minimum) continue;
      const isMet = Math.round(hourly * 100) / 100 >= minimum;
      rate.append(line(`${isMet ? "✓ At least" : "Below"} ${platform}’s minimum of ${money(minimum)} an hour.`, !isMet));
    }
  });
}

/** Return the fields that a researcher fills in. */
function editableFields(settings) {
  return [...settings.elements].filter(
    (field) => field.name && field.type !== "hidden" && !(field instanceof HTMLFieldSetElement) && !(field instanceof HTMLButtonElement));
}

function isChanged(field) {
  if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
  if (!(field instanceof HTMLSelectElement)) return field.value !== field.defaultValue;
  return field.selectedIndex !== initialIndex(field);
}

function initialIndex(select) {
  return Math.max(0, [...select.options].findIndex((option) => option.defaultSelected));
}

/** Show beside the button that changes are not saved, and ask before the page is left with them. */
function warnOfUnsavedChanges(settings) {
  const fields = editableFields(settings);
  const hasUnsavedChanges = () => "unsaved" in settings.dataset || fields.some(isChanged);
  const line = settings.querySelector(".unsaved");
  if (!line) return;                                          // the reader may change nothing
  let isSubmitting = false;

  const update = () => {
    const changeCount = fields.filter(isChanged).length;
    const count = changeCount === 1 ? "1 change" : `${changeCount} changes`;
    const text = !hasUnsavedChanges() ? "" : settings.matches(".launched") && changeCount ? `${count} not saved yet` : "Not saved yet";
    if (line.textContent !== text) line.textContent = text;
  };

  settings.addEventListener("input", update);
  settings.addEventListener("submit", () => {
    isSubmitting = true;
    // Without the field that a link led to: the next page begins with the notice that says what was saved.
    if (location.hash) history.replaceState(history.state, "", location.pathname + location.search);
  });
  addEventListener("pageshow", () => { isSubmitting = false; update(); });
  addEventListener("beforeunload", (event) => { if (!isSubmitting && hasUnsavedChanges()) event.preventDefault(); });
}

/** List each change as old → new above the button that saves them. */
function listChanges(settings, list) {
  const fields = editableFields(settings);
  const shorten = (text) => (text.length > 60 ? `${text.slice(0, 60)}…` : text) || "empty";
  const describe = (field) => {
    if (field.type === "checkbox") return [field.defaultChecked, field.checked].map((on) => (on ? "on" : "off"));
    if (!(field instanceof HTMLSelectElement)) return [field.defaultValue, field.value].map(shorten);
    return [initialIndex(field), field.selectedIndex].map((index) => shorten(field.options[index]?.text ?? ""));
  };
  const update = () => {
    const changed = fields.filter(isChanged);
    list.replaceChildren(...changed.map((field) => {
      const [before, after] = describe(field);
      const line = document.createElement("li");
      const [old, now] = [document.createElement("del"), document.createElement("ins")];
      [old.textContent, now.textContent] = [before, after];
      line.append(`${field.labels[0]?.textContent ?? field.name}: `, old, " → ", now);
      return line;
    }));
    list.hidden = !changed.length;
  };
  settings.addEventListener("input", update);
  addEventListener("pageshow", update);
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

/** Show only fields that the chosen way of asking and update law read, and keep the preview up to date. */
function followDraft(draft) {
  const { design, update_law: updateLaw } = draft.elements;
  const designName = () => design?.value ?? draft.dataset.design;
  const chosenLaw = () => (updateLaw ? updateLaw.value || usualLaw(draft) : draft.dataset.law);
  const includes = (names, name) => !names || names.split(" ").includes(name);

  // Hidden fields keep their values, unless these could not be sent.
  const showFittingFields = () => {
    const law = chosenLaw();
    for (const field of draft.querySelectorAll("[data-designs], [data-laws]")) {
      field.hidden = !includes(field.dataset.designs, designName()) || !includes(field.dataset.laws, law);
      for (const control of field.querySelectorAll("input, select, textarea")) {
        control.disabled = false;
        control.disabled = field.hidden && !control.checkValidity();
      }
    }
  };

  // Another way of asking brings its own usual number of items; the one entered for the former returns with it.
  const itemsPerHit = draft.elements.items_per_hit;
  const designOfItems = Object.assign(document.createElement("input"), { type: "hidden", name: "items_per_hit_of" });
  const countByDesign = {};
  let formerDesign = designName();
  draft.addEventListener("change", ({ target }) => {
    if (target.name === "design" && itemsPerHit) {
      countByDesign[formerDesign] = itemsPerHit.value;
      formerDesign = designName();
      itemsPerHit.value = countByDesign[formerDesign] ?? "";
      designOfItems.value = formerDesign;
      itemsPerHit.after(designOfItems);
    }
    if (target.name === "design" || target === updateLaw) showFittingFields();
  });
  addEventListener("pageshow", showFittingFields);
  showFittingFields();

  const frame = draft.querySelector("iframe[name=seen]");
  if (frame) keepPreviewUpToDate(draft, frame);
}

/** Show only the numbers that the chosen goal reads. Hidden ones keep their values. */
function followGoal(goal) {
  const showFittingNumbers = () => {
    for (const field of goal.closest(".numbers, fieldset").querySelectorAll("[data-goals]")) {
      field.hidden = !field.dataset.goals.split(" ").includes(goal.value);
    }
  };
  goal.addEventListener("change", showFittingNumbers);
  addEventListener("pageshow", showFittingNumbers);
  showFittingNumbers();
}

/** Return the usual update law of the way of asking, which applies if none is chosen. */
function usualLaw(draft) {
  return draft.dataset.usualLaw;
}

/** Show the page for what the form says, soon after the last key. `replace` lets Back still leave this page. */
function keepPreviewUpToDate(draft, frame) {
  const previewAddress = () => {
    const query = new URLSearchParams();
    for (const name of ["step", "template"]) if (draft.elements[name]?.value) query.set(name, draft.elements[name].value);
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
  draft.addEventListener("change", () => updatePreview(0));
  draft.addEventListener("input", () => updatePreview());
  addEventListener("pageshow", () => updatePreview(0));
}

// An older link named a setting of any step: lead on to the step that has it.
if (location.search.includes("moved") && location.hash) {
  location.replace(`../settings?setting=${location.hash.slice(1)}`);
}
