// Controls of an expected answer, which write to its text field: boxes for labels, and a slider for points.

import { element } from "./elements.js";

const LABEL_SEPARATOR = " | ";
export const MAX_LABEL_BOXES = 12;                                             // more are suggested while one types

/** Return the labels that an expected answer names; undefined if it names something else, such as #2. */
export function chosenLabels(labels, expected) {
  if (labels.some((label) => label.includes("|"))) return undefined;
  const named = expected.split("|").map((part) => part.trim()).filter(Boolean);
  const isLabel = (part) => labels.includes(part);
  return named.every(isLabel) ? named : undefined;
}

/** Return a box for each label: one answer or several are expected. `onChange` is called after the answer is written. */
export function drawLabelBoxes(title, labels, chosen, answer, onChange) {
  const boxes = labels.map((value) => element("input", { type: "checkbox", value, checked: chosen.includes(value) }));
  for (const box of boxes) {
    box.addEventListener("change", () => {
      answer.value = boxes.filter(({ checked }) => checked).map(({ value }) => value).join(LABEL_SEPARATOR);
      onChange();
    });
  }
  return element("fieldset", { className: "label-boxes" }, element("legend", { textContent: title }),
    ...boxes.map((box) => element("label", {}, box, ` ${box.value}`)));
}

/** Return the slider of the scale, with the labels of its ends as annotators see them. */
export function drawSlider(title, [min, max], ends, answer, onChange) {
  const slider = element("input", { type: "range", min, max, value: answer.value || "50" });
  slider.setAttribute("aria-label", title);
  const showWhetherSet = () => slider.classList.toggle("unset", !answer.value.trim());
  slider.addEventListener("input", () => { answer.value = slider.value; onChange(); showWhetherSet(); });
  answer.addEventListener("input", () => { slider.value = answer.value; showWhetherSet(); });
  showWhetherSet();
  const [low, high] = ends.map((textContent) => element("span", { textContent, dir: "auto" }));
  return element("div", { className: "practice-scale" }, slider, element("p", { className: "aside" }, low, high));
}
