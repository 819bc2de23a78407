// Two long texts on a narrow page: one at a time, by tabs. Where both fit, and without scripts, B is below A.

import { all, stored } from "../../hit/page.js";

const NARROW = "(max-width: 764px)";
const PLAYERS = "audio, video";        // what must be played is not to be hidden

/** Arrange the sides of a HIT for the width of the page: by tabs where they need more than a screen, else both. */
export function arrange(hit) {
  const fieldset = hit.fieldset.closest(".hit");
  const pair = fieldset.querySelector(".pair");
  if (Number(pair.dataset.width) === innerWidth) return;     // a phone's bars come and go
  pair.dataset.width = innerWidth;
  const sides = all(pair, ".side");
  showBoth(pair, sides);
  if (needsTabs(fieldset, pair, sides)) showTabs(hit, pair, sides);
}

function needsTabs(fieldset, pair, sides) {
  if (sides.length !== 2 || !matchMedia(NARROW).matches || pair.querySelector(PLAYERS)) return false;
  const needed = [...sides, fieldset.querySelector(".dock")].reduce((sum, part) => sum + part.offsetHeight, 0);
  return fieldset.classList.contains("long-texts") && needed > innerHeight;
}

function showBoth(pair, sides) {
  pair.classList.remove("tabbed");
  pair.querySelector(".side-tabs")?.remove();
  for (const side of sides) {
    side.hidden = false;
    side.setAttribute("role", "group");
    side.removeAttribute("tabindex");
  }
}

function showTabs(hit, pair, sides) {
  const list = Object.assign(document.createElement("div"), { className: "side-tabs" });
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-labelledby", "question");
  list.append(...sides.map((side) => makeTab(hit, side)));
  for (const side of sides) {
    side.setAttribute("role", "tabpanel");
    side.tabIndex = 0;
  }
  pair.classList.add("tabbed");
  pair.prepend(list);
  list.addEventListener("keydown", moveFocus);
  const kept = stored("sessionStorage", (storage) => storage.getItem(keyOf(hit)));
  sides[1].hidden = true;
  select(hit, sides.find(({ dataset }) => dataset.side === kept) ?? sides[0]);
}

const keyOf = ({ form }) => `easel:side:${form.dataset.hit}`;

function makeTab(hit, side) {
  const tab = Object.assign(document.createElement("button"), { type: "button", textContent: side.querySelector(".side-name").textContent });
  side.id = `side-${side.dataset.side}`;
  tab.dataset.side = side.dataset.side;
  tab.toggleAttribute("data-chosen", "chosen" in side.dataset);
  tab.setAttribute("role", "tab");
  tab.setAttribute("aria-controls", side.id);
  tab.addEventListener("click", () => select(hit, side));
  return tab;
}

/** Show one side, where it was read before; the other keeps its place. */
function select(hit, side) {
  const pair = side.closest(".pair");
  const shown = all(pair, ".side").find(({ hidden }) => !hidden);
  shown.readTo = scrollY;
  shown.hidden = true;
  side.hidden = false;
  for (const tab of all(pair, "[role=tab]")) {
    const isSelected = tab.dataset.side === side.dataset.side;
    tab.setAttribute("aria-selected", String(isSelected));
    tab.tabIndex = isSelected ? 0 : -1;
  }
  stored("sessionStorage", (storage) => storage.setItem(keyOf(hit), side.dataset.side));
  const top = pair.getBoundingClientRect().top + scrollY;
  if (scrollY > top || side.readTo > top) scrollTo(0, Math.max(top, side.readTo ?? 0));
}

// An arrow key on a tab goes to the other tab; everywhere else it chooses an answer.
function moveFocus(event) {
  if (!["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) return;
  event.preventDefault();
  event.stopPropagation();
  const tabs = all(event.currentTarget, "[role=tab]");
  const goesFirst = event.key === "Home" || (event.key !== "End" && event.target === tabs[1]);
  const tab = tabs[goesFirst ? 0 : 1];
  tab.focus();
  tab.click();
}
