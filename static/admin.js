// Researchers' pages work without this file; it adds copy buttons and times in the reader's zone.

for (const time of document.querySelectorAll("time[datetime]")) {
  const moment = new Date(time.dateTime);
  time.title = time.textContent;
  time.textContent = moment.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

for (const button of document.querySelectorAll("button[data-copy]")) {
  const words = button.textContent;
  // Browsers hide the clipboard from pages that came over plain HTTP from another machine.
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = words; }, 2000);
  });
}
