// Every researcher's page works without this file. It shows times in the reader's zone, adds copy buttons and the search
// by Ctrl+K, and forgets entries that were saved.

import { forgetKeptEntries } from "./admin/kept_entries.js";
import "./admin/palette.js";
import { localizeTimes } from "./admin/times.js";

forgetKeptEntries();
localizeTimes(document);
if (document.querySelector("time[data-ago]")) setInterval(() => localizeTimes(document), 60_000);

const deniedNote = document.createElement("span");
deniedNote.className = "aside";
deniedNote.setAttribute("role", "alert");
deniedNote.textContent = "Your browser did not allow copying. The text is selected: press Ctrl+C, or ⌘C on a Mac.";
for (const button of document.querySelectorAll("button[data-copy]")) {
  const label = [...button.childNodes];
  // Browsers hide the clipboard from pages that came over plain HTTP from another machine.
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    deniedNote.remove();
    try {
      await navigator.clipboard.writeText(source.value ?? source.textContent);
    } catch {
      if (source.select) source.select();
      else getSelection().selectAllChildren(source);
      (button.closest(".copy") ?? button).after(" ", deniedNote);
      return;
    }
    button.textContent = "Copied";
    setTimeout(() => button.replaceChildren(...label), 2000);
  });
}
