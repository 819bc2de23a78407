// Categories: letters choose a label of the item in hand; in many labels one can search by their words.

import { run } from "../hit.js";
import { chosenByKeys, pick, rowInHand } from "../hit/choices.js";
import { isSlash, withModifier } from "../hit/keys.js";
import { all } from "../hit/page.js";
import { words } from "../hit/words.js";

run(chosenByKeys({ begin, taken, chose: (hit, row) => clear(fieldOf(row[0])) }));

const rowOf = (element) => element.closest("[data-item]");
const fieldOf = (element) => rowOf(element).querySelector("input[type=search]");
const radiosOf = (field) => all(rowOf(field), "input[type=radio]");
const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

function begin(hit) {
  for (const field of all(hit.fieldset, "input[type=search]")) {
    field.addEventListener("input", () => filter(field));
    field.addEventListener("keydown", (event) => searchKey(hit, field, event));
  }
}

function taken(hit, event) {
  if (!isSlash(event) || withModifier(event) || event.target.matches("input[type=search]")) return false;
  const field = fieldOf(rowInHand(hit)[0]);
  if (!field) return false;
  event.preventDefault();
  field.select();
  field.focus();
  return true;
}

// What was chosen stays to be seen, whatever is searched for.
function filter(field) {
  const wanted = plain(field.value.trim());
  for (const radio of radiosOf(field)) {
    const option = radio.closest("label");
    option.hidden = !radio.checked && !plain(option.querySelector(".means").textContent).includes(wanted);
  }
  rowOf(field).querySelector(".found").textContent = wanted ? words("%(count)s found", { count: matching(field).length }) : "";
}

function matching(field) {
  const wanted = plain(field.value.trim());
  return radiosOf(field).filter((radio) => plain(radio.closest("label").querySelector(".means").textContent).includes(wanted));
}

function searchKey(hit, field, event) {
  const found = matching(field);
  if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();            // else it would send the form
    if (!field.value.trim() || !found.length) return;
    clear(field);
    pick(hit, radiosOf(field), found[0]);
  } else if (event.key === "ArrowDown" && found.length) {
    event.preventDefault();
    found[0].focus();
  } else if (event.key === "Escape") {
    event.preventDefault();
    clear(field);
    radiosOf(field)[0].focus();
  }
}

function clear(field) {
  if (!field?.value) return;
  field.value = "";
  filter(field);
}
