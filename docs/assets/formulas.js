// Typesets the formulas of a page with the KaTeX that Easel carries. Until then, and without scripts, the source is shown.
for (const formula of document.querySelectorAll(".arithmatex")) {
  const source = formula.textContent.replace(/^\\[([]/, "").replace(/\\[)\]]$/, "");
  katex.render(source, formula, { displayMode: formula.tagName === "DIV", throwOnError: false, output: "htmlAndMathml" });
}
