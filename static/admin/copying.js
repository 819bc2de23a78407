/** Let the copy buttons of a part of the page copy the text or the value of the element that they name. */
export function addCopying(part) {
  for (const button of part.querySelectorAll("button[data-copy]")) {
    const label = [...button.childNodes];
    // Browsers hide the clipboard from pages that came over plain HTTP from another machine.
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copy);
      await navigator.clipboard.writeText(source.value ?? source.textContent);
      button.textContent = "Copied";
      setTimeout(() => button.replaceChildren(...label), 2000);
    });
  }
}
