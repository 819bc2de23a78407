// Editor of items with expected answers, which are practice items of training, test items of a qualification, or gold items: a card
// for each row of the table in the text field. The text field keeps the only copy of the table. A table with other
// columns, or none yet readable, is edited as text.

import { chosenLabels, drawLabelBoxes, drawSlider, MAX_LABEL_BOXES } from "./answer_controls.js";
import { button, element, labelled, redrawWhenRestored, showEditor, signButton, writeText } from "./elements.js";
import { formatTable, parseTable } from "./table.js";

const inputs = document.querySelector("#expected-answer-inputs");
const answerKinds = JSON.parse(inputs?.textContent ?? "[]");
const areFiles = inputs?.hasAttribute("data-files");
const answerColumns = answerKinds.flatMap(({ criterion }) =>
  [`expected ${criterion}`.trim(), `tolerance ${criterion}`.trim()]);
const PROPOSED_TOLERANCES = Object.fromEntries(answerKinds.map(({ criterion, proposed_tolerance: proposed }) =>
  [`tolerance ${criterion}`.trim(), proposed]));
const SET = { column: "set", label: "Practice task (optional)", placeholder: "such as: first", hint: "Items with the same name here are shown in one task." };
const ID = { column: "id", label: "Id (optional)", placeholder: "the next free number", hint: "Name of the item in exports." };
const EDITORS = {
  training: { noun: "practice item", last: SET, explained: "Annotators read it with the expected answer, after they answered.", beyond: "In the training, people continue only if their answers are within it." },
  qualification: { noun: "test item", last: SET, explained: "Only for you: a qualification shows no explanations.", beyond: "In the qualification, only answers within it are right." },
  "gold-pasted": { noun: "gold item", last: ID, explained: "Only for you: annotators do not read it.", beyond: "An annotator whose answer is not within it fails the item." },
};

for (const [name, editor] of Object.entries(EDITORS)) {
  const field = document.querySelector(`textarea#${name}`);
  if (field && answerKinds.length) editExpectedAnswers(field, editor);
}

/** Return the rows of a table as objects; undefined if it has no column of texts, or columns that no card shows. */
function readItems(text, allColumns) {
  if (!text.trim()) return [];
  const table = parseTable(text);
  const columns = table?.columns ?? [];
  const isShown = columns.includes("text") && new Set(columns).size === columns.length
    && columns.every((column) => allColumns.includes(column));
  return isShown ? table.rows.map(({ cells, line }) =>
    Object.fromEntries([["line", line], ...columns.map((column, place) => [column, cells[place] ?? ""])])) : undefined;
}

/** Return the table. It has the columns that some item fills, and those that every table should have. */
function formatItems(items, allColumns) {
  if (!items.length) return "";
  const used = allColumns.filter((column) =>
    column === "text" || column.startsWith("expected") || items.some((item) => item[column]?.trim()));
  return formatTable(used, items.map((item) => used.map((column) => item[column] ?? "")));
}

/** Return a labelled field with a hint below it. */
function withHint(labelledField, hint) {
  labelledField.append(element("span", { className: "aside", textContent: hint }));
  return labelledField;
}

function editExpectedAnswers(text, { noun, last, beyond, explained }) {
  const columns = ["text", ...answerColumns, "explanation", last.column];
  const { id: fieldId } = text;
  const title = text.labels[0].textContent.trim();
  const errorText = document.getElementById(`${fieldId}-error`)?.textContent ?? "";
  let wrongLine = Number(/^Line (\d+):/.exec(errorText)?.[1]);               // until the first change
  const cards = element("ol", { className: "editor-cards" });
  const news = element("p");
  news.setAttribute("role", "status");
  const add = () => {
    change([...readItems(text.value, columns), { ...PROPOSED_TOLERANCES }]);
    focusCard(cards.children.length - 1);
  };
  const addButton = button(`Add a ${noun}`, add, { className: "" });
  const editor = element("div", { className: "editor", tabIndex: -1 }, cards, news, element("p", {}, addButton));
  editor.setAttribute("role", "group");
  editor.setAttribute("aria-label", title);
  const modeButton = button("", () => show(!text.hidden));
  text.after(editor, element("p", {}, modeButton));
  // A wrong entry in folded settings could not be pointed at.
  editor.addEventListener("invalid", () => {
    const folded = editor.closest("details");
    if (folded) folded.open = true;
  }, { capture: true });
  redrawWhenRestored(text, () => { if (text.hidden) show(true); });
  show(true);

  /** Show the cards if the table can be shown so and they are wanted, else the text. */
  function show(areCardsWanted) {
    const asCards = areCardsWanted && readItems(text.value, columns) !== undefined;
    text.id = fieldId;                                                        // by which its hint is found
    showEditor(editor, text, asCards);
    editor.toggleAttribute("id", asCards);
    text.id = asCards ? `${fieldId}-text` : fieldId;
    if (asCards) editor.id = fieldId;
    modeButton.textContent = asCards ? "Edit as table" : "Edit as cards";
    news.replaceChildren();
    if (asCards) draw();
    else cards.replaceChildren();                                             // their checks must not hold up the form
  }

  function draw() {
    cards.replaceChildren(...readItems(text.value, columns).map(drawCard));
  }

  function change(items) {
    wrongLine = undefined;
    news.replaceChildren();
    writeText(text, formatItems(items, columns));
    draw();
  }

  function focusCard(index) {
    (cards.children[index]?.querySelector("[data-column=text]") ?? addButton).focus();
  }

  /** Store what the controls of the cards say. They keep the focus. */
  function readCards(changed) {
    wrongLine = undefined;
    const card = changed.closest("li");
    card.classList.remove("wrong");
    card.querySelector(".problem").hidden = true;
    const items = [...cards.children].map((item) => Object.fromEntries(
      [...item.querySelectorAll("[data-column]")].map(({ dataset, value }) => [dataset.column, value])));
    writeText(text, formatItems(items, columns));
  }

  function move(index, step) {
    const items = readItems(text.value, columns);
    items.splice(index + step, 0, ...items.splice(index, 1));
    change(items);
    focusCard(index + step);
  }

  function remove(index) {
    const items = readItems(text.value, columns);
    const [removed] = items.splice(index, 1);
    change(items);
    const undo = button("Undo", () => {
      const present = readItems(text.value, columns);
      present.splice(index, 0, removed);
      change(present);
      focusCard(index);
    });
    news.replaceChildren(`${noun[0].toUpperCase()}${noun.slice(1)} deleted. `, undo);
    undo.focus();
  }

  function drawCard(item, index, items) {
    const place = `${title.toLowerCase().replace(/ items$/, "")} item ${index + 1}`;
    const isWrong = item.line === wrongLine;
    return element("li", { className: isWrong ? "wrong" : "" },
      drawShownField(item),
      ...answerKinds.map((kind, number) => drawAnswer(kind, item, `${fieldId}-${index}-${number}`)),
      element("div", { className: "question-facts" },
        withHint(labelled("Explanation", cellControl("input", "explanation", item, { maxLength: 2000 })), explained),
        withHint(labelled(last.label, cellControl("input", last.column, item, { placeholder: last.placeholder })), last.hint)),
      element("p", { className: "question-acts" },
        signButton("↑", `Move ${place} up`, () => move(index, -1), { disabled: index === 0 }),
        signButton("↓", `Move ${place} down`, () => move(index, 1), { disabled: index === items.length - 1 }),
        button("Delete", () => remove(index))),
      element("p", { className: "problem", textContent: isWrong ? errorText : "", hidden: !isWrong }));
  }

  /** Return the field for what annotators see. */
  function drawShownField(item) {
    if (!areFiles) return labelled("Text", cellControl("textarea", "text", item, { rows: 2, required: true }));
    const field = labelled("File name", cellControl("input", "text", item, { required: true }));
    return withHint(field, "A file that you uploaded with the items.");
  }

  /** Return the controls of the expected answer to one criterion: a slider for points, boxes or suggestions for labels. */
  function drawAnswer(kind, item, id) {
    const { criterion, labels, range, ends, hint, default_tolerance: defaultTolerance } = kind;
    const [expected, tolerance] = ["expected", "tolerance"].map((column) => `${column} ${criterion}`.trim());
    const title = `Expected answer ${criterion}`.trim();
    const answer = cellControl("input", expected, item, { placeholder: hint });
    const chosen = labels.length && labels.length <= MAX_LABEL_BOXES ? chosenLabels(labels, answer.value) : undefined;
    const controls = [];
    if (chosen) {
      answer.hidden = true;
      controls.push(drawLabelBoxes(title, labels, chosen, answer, () => readCards(answer)), answer);
    } else {
      controls.push(labelled(title, answer));
    }
    if (labels.length && !chosen) {
      answer.setAttribute("list", id);
      controls.push(element("datalist", { id }, ...labels.map((value) => element("option", { value }))));
    } else if (range) {
      controls.push(drawSlider(title, range, ends, answer, () => readCards(answer)));
    }
    if (defaultTolerance || item[tolerance]) controls.push(drawTolerance(tolerance, item, kind, `${id}-tolerance`));
    return element("div", { className: "question-facts" }, ...controls);
  }

  /** Return the field for the tolerance, with what follows from an answer that is not within it. */
  function drawTolerance(column, item, { default_tolerance: placeholder, tolerance_reason: reason }, id) {
    const field = cellControl("input", column, item, { inputMode: "decimal", placeholder });
    field.setAttribute("aria-describedby", id);
    return element("div", {}, labelled("Tolerance (optional)", field),
      element("p", { className: "aside", id, textContent: `${reason} ${beyond}`.trim() }));
  }

  /** Return a control for a cell of the table, which is written back at each key. */
  function cellControl(tag, column, item, properties = {}) {
    const control = element(tag, { ...(tag === "input" ? { type: "text" } : {}), value: item[column] ?? "", ...properties });
    control.dataset.column = column;
    control.addEventListener("input", () => readCards(control));
    return control;
  }
}
