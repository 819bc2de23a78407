// Editor of the questions asked once: a card for each line of the text field. The text field keeps the only copy of the
// questions: the cards are drawn from it, and each change of a card is written back to it.

import { button, element, labelled, redrawWhenRestored, showEditor, signButton, writeText } from "./elements.js";
import { SEPARATOR, formatLine, formatText, parseLine, parseText } from "./question_lines.js";

const MAX_QUESTIONS = 20;
const MIN_CHOICES = 2;
const MAX_NAME_WORDS = 4;
const GIVEN_NAME = /^question_\d+$/;                                           // of a question whose text is not written yet
const FILLER_WORDS = new Set("a an and are at do does did have how in is it of on or the to what which who you your".split(" "));

const field = document.querySelector("textarea#questions");
if (field) editQuestions(field);

function isWritten({ text }) {
  return Boolean(text.trim());
}

/** Return a name for exports made of the first words of a question; empty if these have no letters of a name. */
function nameFromText(text) {
  const plain = text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
  const all = plain.replace(/[^a-z0-9]+/g, " ").trim().split(" ").filter(Boolean);
  const telling = all.filter((word) => !FILLER_WORDS.has(word));
  const words = telling.length > 1 ? telling : all;
  return words.slice(0, MAX_NAME_WORDS).join("_").replace(/^[^a-z]+/, "").slice(0, 36);
}

/** Return a name that no other question has: the stem itself if it is free, else with a number. */
function uniqueName(questions, stem) {
  return questions.some(({ name }) => name.toLowerCase() === stem.toLowerCase()) ? freeName(questions, stem) : stem;
}

/** Return a name that no question has yet. */
function freeName(questions, stem) {
  const names = new Set(questions.map(({ name }) => name.toLowerCase()));
  let number = 1;
  while (names.has(`${stem}_${number}`.toLowerCase())) number += 1;
  return `${stem}_${number}`;
}

function editQuestions(text) {
  const lineErrors = Object.fromEntries(Object.entries(JSON.parse(text.dataset.lineErrors ?? "{}"))
    .map(([line, error]) => [formatLine(parseLine(line)), error]));
  const cards = element("ol", { className: "question-cards" });
  const news = element("p", { className: "editor-news" });
  news.setAttribute("role", "status");
  const addButton = button("Add a question", () => {
    const questions = parseText(text.value);
    change([...questions, { name: freeName(questions, "question"), optional: false, text: "", choices: [], number: null, condition: null }]);
    focusCard(questions.length, ".question-text");
  }, { className: "" });
  const editor = element("div", { className: "editor", tabIndex: -1 }, cards, news, element("p", {}, addButton));
  editor.setAttribute("role", "group");
  editor.setAttribute("aria-label", "Questions asked once");
  const modeButton = button("", () => show(!text.hidden));
  text.after(editor, element("p", { className: "editor-mode" }, modeButton));
  redrawWhenRestored(text, () => { if (text.hidden) draw(); });
  text.form.addEventListener("submit", dropEmptyChoices, { capture: true });
  show(true);

  /** Show the cards, or the text. A link to the field leads to the one that is seen. */
  function show(asCards) {
    showEditor(editor, text, asCards);
    text.id = asCards ? "questions-text" : "questions";
    editor.toggleAttribute("id", asCards);
    if (asCards) editor.id = "questions";
    modeButton.textContent = asCards ? "Edit as text" : "Edit as cards";
    news.replaceChildren();
    if (asCards) draw();
    else cards.replaceChildren();                                             // their checks must not hold up the form
  }

  function draw() {
    const questions = parseText(text.value);
    cards.replaceChildren(...questions.map((_, index) => drawCard(questions, index)));
    addButton.disabled = questions.length >= MAX_QUESTIONS;
  }

  /** Store other questions and draw them. */
  function change(questions) {
    news.replaceChildren();
    writeText(text, formatText(questions));
    draw();
  }

  /** Before the form is sent: leave out the empty choices of questions that have enough others. */
  function dropEmptyChoices() {
    if (!text.hidden) return;
    const questions = parseText(text.value);
    const named = questions.map(({ choices }) => choices.filter((choice) => choice.text));
    const dropping = questions.filter(({ choices }, index) =>
      named[index].length >= MIN_CHOICES && named[index].length < choices.length);
    for (const question of dropping) question.choices = named[questions.indexOf(question)];
    if (dropping.length) change(questions);
  }

  function focusCard(index, selector) {
    (cards.children[index]?.querySelector(selector) ?? addButton).focus();
  }

  /** Store what the controls of the cards say. They keep the focus. */
  function readCards() {
    const questions = [...cards.children].map((card) => ({
      name: card.querySelector(".question-name").value,
      optional: !card.querySelector(".question-required").checked,
      text: card.querySelector(".question-text").value,
      choices: [...card.querySelectorAll(".choice-rows > li")].map(readChoice),
      number: readNumber(card),
    }));
    for (const [index, card] of [...cards.children].entries()) questions[index].condition = readCondition(card, questions);
    writeText(text, formatText(questions));
    for (const [index, card] of [...cards.children].entries()) {
      if (!card.contains(document.activeElement)) card.querySelector(".question-condition").replaceWith(drawCondition(questions, index));
      requireChoices(card);
      showError(card, questions[index]);
    }
  }

  /** Require as many choices as a question needs; further ones may stay empty. */
  function requireChoices(card) {
    const inputs = [...card.querySelectorAll(".question-choice")];
    const isFilled = ({ value }) => Boolean(value.trim());
    const isEnough = inputs.filter(isFilled).length >= MIN_CHOICES;
    for (const input of inputs) input.required = !isEnough;
  }

  /** Make the name of a question from its text until the researcher writes one. */
  function nameAfterText(card) {
    if (!("nameFollows" in card.dataset)) return;
    const place = [...cards.children].indexOf(card);
    const others = parseText(text.value).filter((_, index) => index !== place);
    const name = card.querySelector(".question-name");
    name.value = uniqueName(others, nameFromText(card.querySelector(".question-text").value) || freeName(others, "question"));
    readCards();
  }

  function readChoice(row) {
    return { text: row.querySelector(".question-choice").value, screened: row.querySelector(".choice-screened").checked };
  }

  function readNumber(card) {
    const inputs = card.querySelectorAll(".question-limit");
    return inputs.length ? Object.fromEntries([...inputs].map(({ dataset, value }) => [dataset.limit, value])) : null;
  }

  /** Return the condition that a card shows, in the present words of the question that it depends on. */
  function readCondition(card, questions) {
    const value = card.querySelector(".question-asked")?.value;
    if (!value) return null;
    const boxes = [...card.querySelectorAll(".condition-answer:checked")];
    const earlier = questions[value];
    const answers = boxes.map(({ dataset, value: answer }) => ("place" in dataset ? earlier.choices[dataset.place].text.trim() : answer));
    return { name: earlier?.name ?? value, answers };
  }

  function showError(card, question) {
    const line = card.querySelector(".problem");
    line.textContent = lineErrors[formatLine(question)] ?? "";
    line.hidden = !line.textContent;
    card.classList.toggle("wrong", !line.hidden);
  }

  function move(index, step) {
    const questions = parseText(text.value);
    questions.splice(index + step, 0, ...questions.splice(index, 1));
    change(questions);
    focusCard(index + step, step < 0 ? ".move-up:enabled, .move-down" : ".move-down:enabled, .move-up");
  }

  function duplicate(index) {
    const questions = parseText(text.value);
    const copy = { ...questions[index], name: freeName(questions, questions[index].name || "question") };
    change([...questions.slice(0, index + 1), copy, ...questions.slice(index + 1)]);
    focusCard(index + 1, ".question-text");
  }

  function remove(index) {
    const questions = parseText(text.value);
    const [removed] = questions.splice(index, 1);
    change(questions);
    const undo = button("Undo", () => {
      const present = parseText(text.value);
      present.splice(index, 0, removed);
      change(present);
      focusCard(index, ".question-text");
    });
    news.replaceChildren("Question deleted. ", undo);
    undo.focus();
  }

  /** Change the choices of a question and focus one of them. */
  function changeChoices(index, changeList, focused) {
    const questions = parseText(text.value);
    changeList(questions[index].choices);
    change(questions);
    cards.children[index].querySelectorAll(".question-choice")[focused]?.focus();
  }

  function moveChoice(index, place, step) {
    changeChoices(index, (choices) => choices.splice(place + step, 0, ...choices.splice(place, 1)), place + step);
  }

  function addChoice(index, place) {
    changeChoices(index, (choices) => choices.splice(place, 0, { text: "", screened: false }), place);
  }

  /** Focus the next choice if it is empty, else add one before it. */
  function goToNextChoice(index, place) {
    const next = cards.children[index].querySelectorAll(".question-choice")[place];
    if (next && !next.value.trim()) next.focus();
    else addChoice(index, place);
  }

  function drawCard(questions, index) {
    const [question, count] = [questions[index], questions.length];
    const place = `question ${index + 1}`;
    const problem = element("p", { className: "problem", id: `question-${index}-problem` });
    const card = element("li", {},
      labelled("Question", textInput("question-text", question.text, { required: true, maxLength: 500 })),
      element("div", { className: "question-facts" },
        labelled("Name in exports", textInput("question-name", question.name,
          { required: true, maxLength: 40, pattern: "[A-Za-z][A-Za-z0-9_]*", title: "Letters, digits and _, a letter first" })),
        labelled("Answer", drawKind(question, index))),
      ...(question.choices.length ? [drawChoices(question, index)] : []),
      ...(question.number ? [drawNumber(question.number)] : []),
      drawCondition(questions, index),
      element("p", { className: "question-acts" }, drawRequired(question),
        signButton("↑", `Move ${place} up`, () => move(index, -1), { className: "quiet move-up", disabled: index === 0 }),
        signButton("↓", `Move ${place} down`, () => move(index, 1), { className: "quiet move-down", disabled: index === count - 1 }),
        button("Duplicate", () => duplicate(index)), button("Delete", () => remove(index))),
      problem);
    card.querySelector(".question-text").setAttribute("aria-describedby", problem.id);
    card.querySelector(".question-text").addEventListener("input", () => nameAfterText(card));
    card.querySelector(".question-name").addEventListener("input", () => { delete card.dataset.nameFollows; });
    if (GIVEN_NAME.test(question.name) && !question.text) card.dataset.nameFollows = "";
    requireChoices(card);
    showError(card, question);
    return card;
  }

  function kindOf({ choices, number }) {
    if (number) return "number";
    return choices.length ? "choice" : "text";
  }

  function drawKind(question, index) {
    const kinds = [["text", "Free text"], ["choice", "One of several choices"], ["number", "A number"]];
    const select = element("select", { className: "question-kind" },
      ...kinds.map(([value, label]) => element("option", { value, textContent: label })));
    select.value = kindOf(question);
    select.addEventListener("change", () => {
      const questions = parseText(text.value);
      const empty = () => ({ text: "", screened: false });
      questions[index].choices = select.value === "choice" ? [empty(), empty()] : [];
      questions[index].number = select.value === "number" ? { minimum: "", maximum: "", under: "", over: "" } : null;
      change(questions);
      focusCard(index, { choice: ".question-choice", number: ".question-limit" }[select.value] ?? ".question-kind");
    });
    return select;
  }

  function drawRequired(question) {
    const box = element("input", { type: "checkbox", className: "question-required", checked: !question.optional });
    box.addEventListener("input", readCards);
    return element("label", { className: "question-must" }, box, " Must be answered");
  }

  function drawChoices(question, index) {
    const { length } = question.choices;
    const list = element("ol", { className: "choice-rows" }, ...question.choices.map((choice, place) => {
      const name = `choice ${place + 1}`;
      const input = textInput("question-choice", choice.text, { maxLength: 500, placeholder: `Choice ${place + 1}` });
      input.setAttribute("aria-label", `Choice ${place + 1}`);
      input.addEventListener("keydown", (event) => {
        if (event.key === "Enter") goToNextChoice(index, place + 1);
        else if (event.altKey && event.key === "ArrowUp" && place > 0) moveChoice(index, place, -1);
        else if (event.altKey && event.key === "ArrowDown" && place < length - 1) moveChoice(index, place, 1);
        else return;
        event.preventDefault();
      });
      return element("li", {}, input, drawScreened(choice, name),
        signButton("↑", `Move ${name} up`, () => moveChoice(index, place, -1), { disabled: place === 0 }),
        signButton("↓", `Move ${name} down`, () => moveChoice(index, place, 1), { disabled: place === length - 1 }),
        signButton("×", `Remove ${name}`, () => changeChoices(
          index, (choices) => choices.splice(place, 1), Math.min(place, length - 2)), { disabled: length <= MIN_CHOICES }));
    }));
    return element("div", { className: "question-choices" }, list,
      button("Add a choice", () => addChoice(index, length)));
  }

  /** Return a box for a choice whose people cannot take part. */
  function drawScreened({ screened }, name) {
    const box = element("input", { type: "checkbox", className: "choice-screened", checked: screened });
    box.setAttribute("aria-label", `Screen out people with ${name}`);
    box.addEventListener("input", readCards);
    const title = "People who give this answer cannot take part";
    return element("label", { className: "choice-screen", title }, box, " screen out");
  }

  function drawNumber(number) {
    const limits = [
      ["minimum", "Least possible"], ["maximum", "Greatest possible"], ["under", "Screen out under"], ["over", "Screen out over"],
    ];
    return element("div", { className: "question-facts question-limits" }, ...limits.map(([name, label]) => {
      const input = element("input", { type: "number", step: "any", className: "question-limit", value: number[name] });
      input.dataset.limit = name;
      input.addEventListener("input", readCards);
      return labelled(label, input);
    }));
  }

  /** Return the controls that say when a question is asked; empty if no question before it has choices. */
  function drawCondition(questions, index) {
    const { condition } = questions[index];
    const earlier = [...questions.entries()].filter(([place, { choices }]) => place < index && choices.some(isWritten));
    if (!earlier.length && !condition) return element("div", { className: "question-condition", hidden: true });
    const [known, source] = earlier.find(([, { name }]) => name === condition?.name) ?? [condition?.name ?? "", null];
    const options = [["", "Everyone"], ...earlier.map(([place, question]) => [place, `People by their answer to “${question.text || question.name}”`])];
    if (condition && !source) options.push([condition.name, `People by their answer to ${condition.name} (no question above with choices)`]);
    const select = element("select", { className: "question-asked" },
      ...options.map(([value, label]) => element("option", { value, textContent: label })));
    select.value = known;
    select.addEventListener("change", () => askOnlyIf(index, select.value));
    return element("div", { className: "question-condition" }, labelled("Asked of", select),
      ...(condition ? [drawConditionAnswers(condition.answers, source?.choices ?? [], index)] : []));
  }

  /** Ask a question only of people who give the first answer to the question at a place, or of everyone. */
  function askOnlyIf(index, place) {
    const questions = parseText(text.value);
    const earlier = questions[place];
    questions[index].condition = earlier ? { name: earlier.name, answers: [earlier.choices.find(isWritten).text] } : null;
    change(questions);
    focusCard(index, ".question-asked");
  }

  /** Return a box for each answer after which a question is asked, ticked or not; one answer at least must be ticked. */
  function drawConditionAnswers(answers, choices, index) {
    const isKept = (choice) => isWritten(choice) || answers.includes(choice.text);  // one that is being rewritten is empty at times
    const known = [...choices.entries()].filter(([, choice]) => isKept(choice));
    const gone = answers.filter((answer) => !known.some(([, choice]) => choice.text === answer));
    const box = (label, checked, properties) => {
      const input = element("input", { type: "checkbox", className: "condition-answer", checked });
      Object.assign(input.dataset, properties);
      input.value = label;
      input.addEventListener("input", () => { requireOneAnswer(group); readCards(); });
      return element("label", {}, input, " ", "place" in properties ? label : `${label} (no choice any more)`);
    };
    const group = element("div", { className: "condition-answers" },
      ...known.map(([place, choice]) => box(choice.text, answers.includes(choice.text), { place })),
      ...gone.map((answer) => box(answer, true, {})));
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", `Answers after which question ${index + 1} is asked`);
    requireOneAnswer(group);
    return group;
  }

  function requireOneAnswer(group) {
    const boxes = [...group.querySelectorAll("input")];
    for (const box of boxes) box.required = box === boxes[0] && !boxes.some(({ checked }) => checked);
  }

  /** Return an input that is written back at each key. A vertical bar separates choices, so none can contain one. */
  function textInput(className, value, properties) {
    const input = element("input", { type: "text", className, value, ...properties });
    const check = () => input.setCustomValidity(
      input.value.includes(SEPARATOR) ? "A vertical bar separates choices in the text form. Please use another character." : "");
    input.addEventListener("input", () => { check(); readCards(); });
    check();
    return input;
  }
}
