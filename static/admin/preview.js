// Windows that show what annotators see: each is as wide as there is room for, and answering a HIT in one ticks the step
// "Try it" of a draft's checklist.

for (const preview of document.querySelectorAll(".window")) {
  const fit = () => preview.style.setProperty("--scale", Math.min(1, preview.clientWidth / preview.dataset.width));
  new ResizeObserver(fit).observe(preview);
}

const openStep = document.querySelector(".checklist [data-step=try]:not(.done)");
// The frame beside the settings form shows settings that are not saved, so it does not count.
for (const frame of openStep ? document.querySelectorAll('iframe[src*="/try/hit"]:not([name=seen])') : []) {
  const currentHit = () => frame.contentDocument?.querySelector("input[name=hit]")?.value;
  let firstHit;
  const tickIfAnswered = () => {
    firstHit ??= currentHit();
    if (!currentHit() || currentHit() === firstHit) return;
    openStep.classList.add("done");
    openStep.querySelector(".visually-hidden").textContent = "Done: ";
  };
  const watch = () => {
    tickIfAnswered();
    new MutationObserver(tickIfAnswered).observe(
      frame.contentDocument, { childList: true, subtree: true, attributes: true, attributeFilter: ["value"] });
  };
  frame.addEventListener("load", watch);
  if (frame.contentDocument?.readyState === "complete") watch();
}
