// Formulas that the server marked are typeset with KaTeX: when a page comes, and when a part of it is replaced. What
// cannot be read as a formula stays as its source. KaTeX draws with elements whose styles are set one by one, which the
// pages' policy allows; MathML is there for screen readers.

const MOST = 2_000;             // on a page; each takes about a millisecond
const OPTIONS = { throwOnError: true, trust: false, strict: "ignore", maxExpand: 500, maxSize: 20 };

let typeset = 0;

function show(formula) {
  const source = formula.textContent;
  const sign = source.startsWith("$") && !source.startsWith("$$") ? 1 : 2;
  formula.dataset.seen = "";
  if (typeset >= MOST) return;
  typeset += 1;
  const drawn = document.createElement("span");
  try {
    window.katex.render(source.slice(sign, -sign), drawn, { ...OPTIONS, displayMode: formula.classList.contains("display") });
  } catch {
    return;
  }
  formula.replaceChildren(...drawn.childNodes);
  formula.classList.add("typeset");
}

function showAll() {
  for (const formula of document.querySelectorAll(".math:not([data-seen])")) show(formula);
}

// Before a HIT is measured; the observer, which is told later, sees what other scripts replace.
document.addEventListener("easel:replaced", () => { typeset = 0; showAll(); });
new MutationObserver(showAll).observe(document.body, { childList: true, subtree: true });
showAll();
