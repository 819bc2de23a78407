// The list of campaigns is filtered while one types. Without this file the form has a button.

import { manageChoice } from "./choice.js";
import { fetchPart, newestRequest, parsePart, replacePart } from "./parts.js";
import { localizeTimes } from "./times.js";

const SEARCH_DELAY_MS = 250;
const form = document.querySelector("form[data-typed]");
const chosenForm = document.querySelector("form[data-chosen]");
const updateChoice = chosenForm && manageChoice(chosenForm);
const startRequest = newestRequest();
let waitingSearch = 0;

/** Show the campaigns that the form describes, and keep that in the address. */
async function showCampaigns() {
  const isNewest = startRequest();
  const address = new URL(form.action);
  for (const [name, value] of new FormData(form)) {
    const isDefault = form.elements[name].selectedIndex === 0;
    if (value && !isDefault) address.searchParams.append(name, value);
  }
  const reply = await fetchPart(address.href).catch(() => null);
  if (!isNewest()) return;
  if (!reply?.ok || reply.redirected) {
    location.assign(address);
    return;
  }
  const fresh = parsePart(await reply.text());
  if (!isNewest()) return;
  history.replaceState(null, "", address);
  const ticked = new Set([...document.querySelectorAll("#campaign-list [name=campaign]:checked")].map((box) => box.value));
  for (const selector of ["#campaign-list", ".campaign-filter nav"]) {
    const next = fresh.querySelector(selector);
    replacePart(document.querySelector(selector), next);
    localizeTimes(next);
  }
  keepChoice(ticked, address.search);
}

/** Tick the rows that stay in the list again. An action leads back to the list as it is now. */
function keepChoice(ticked, query) {
  if (!chosenForm) return;
  for (const box of document.querySelectorAll("#campaign-list [name=campaign]")) box.checked = ticked.has(box.value);
  document.querySelector("#chosen-view").value = query || "?";
  updateChoice();
}

form?.addEventListener("input", ({ target }) => {
  if (target.type !== "search") return;
  clearTimeout(waitingSearch);
  waitingSearch = setTimeout(showCampaigns, SEARCH_DELAY_MS);
});
form?.addEventListener("change", ({ target }) => { if (target.matches("select")) showCampaigns(); });
form?.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(waitingSearch);
  showCampaigns();
});
