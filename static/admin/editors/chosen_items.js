// The form that asks for the expected answers of chosen items: boxes for labels and sliders for points beside the typed
// answers, which without this script are typed.

import { chosenLabels, drawLabelBoxes, drawSlider, MAX_LABEL_BOXES } from "./answer_controls.js";

const answers = JSON.parse(document.getElementById("expected-answer-inputs").textContent).flatMap((kind) => {
  const ofKind = [...document.getElementsByName(`expected ${kind.criterion}`.trim())];
  for (const answer of ofKind) drawControl(kind, answer);
  return ofKind;
});
if (answers.every((answer) => answer.hidden)) hideFormatOfTypedAnswers();

function hideFormatOfTypedAnswers() {
  const aside = document.getElementById("expected-aside");
  document.getElementById("expected-format").remove();
  aside.hidden = !aside.textContent.trim();
}

function drawControl({ labels, range, ends }, answer) {
  const title = answer.getAttribute("aria-label");
  answer.parentElement.classList.add("editor");
  if (range) answer.after(drawSlider(title, range, ends, answer, () => {}));
  const chosen = labels.length && labels.length <= MAX_LABEL_BOXES ? chosenLabels(labels, answer.value) : undefined;
  if (!chosen) return;
  const isRequired = answer.required;
  const fieldset = drawLabelBoxes(title, labels, chosen, answer, requireOne);
  fieldset.querySelector("legend").classList.add("visually-hidden");
  fieldset.setAttribute("aria-describedby", answer.getAttribute("aria-describedby"));
  if (answer.getAttribute("aria-invalid")) fieldset.setAttribute("aria-invalid", "true");
  answer.required = false;
  answer.hidden = true;
  answer.before(fieldset);
  requireOne();

  function requireOne() {
    fieldset.querySelector("input").setCustomValidity(isRequired && !answer.value ? "Tick the expected answer." : "");
  }
}
