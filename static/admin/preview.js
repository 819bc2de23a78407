// Windows that show what annotators see: each is as wide as there is room for.

for (const preview of document.querySelectorAll(".window")) {
  const fit = () => preview.style.setProperty("--scale", Math.min(1, preview.clientWidth / preview.dataset.width));
  new ResizeObserver(fit).observe(preview);
}
