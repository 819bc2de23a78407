// The questions asked once as lines of text, and as objects with their parts.

const LINE = /^\s*([^:?\s]*)(\?)?:(?:\s+|$)(.*)$/;
const NUMBER = /^number(?: from (\S+))?(?: to (\S+))?$/;
const SCREENED_NUMBERS = /^screen out:\s*(under|over) (\S+)$/;
const SCREENED_CHOICE = /^screen out:\s*/;
const CONDITION = /^only if:\s*([A-Za-z][A-Za-z0-9_]*)\s*=\s*(\S.*)$/;
export const SEPARATOR = "|";

/** Return the question of a line; a line that has not the form of a question is a text without a name. */
export function parseLine(line) {
  const match = LINE.exec(line);
  const [text, ...allParts] = (match ? match[3] : line).split(SEPARATOR).map((part) => part.trim());
  const condition = parseCondition(allParts);
  const parts = allParts.filter((part) => !isOfCondition(part, condition));
  const number = parseNumber(parts);
  const choices = number ? [] : parts.map((part) => ({ text: part.replace(SCREENED_CHOICE, ""), screened: SCREENED_CHOICE.test(part) }));
  return { name: match?.[1] ?? "", optional: Boolean(match?.[2]), text, choices, number, condition };
}

/** Return when a question is asked: the name of an earlier question and the answers to it; null for always. */
function parseCondition(parts) {
  const matches = parts.map((part) => CONDITION.exec(part)).filter(Boolean);
  if (!matches.length) return null;
  const name = matches[0][1];
  return { name, answers: matches.filter((match) => match[1] === name).map((match) => match[2]) };
}

function isOfCondition(part, condition) {
  return CONDITION.exec(part)?.[1] === condition?.name && condition !== null;
}

/** Return the limits of a question about a number, as texts; null for other questions. */
function parseNumber([first = "", ...others]) {
  const range = NUMBER.exec(first);
  const screened = others.map((part) => SCREENED_NUMBERS.exec(part));
  if (!range || screened.includes(null)) return null;
  const limit = (side) => screened.find((match) => match[1] === side)?.[2] ?? "";
  return { minimum: range[1] ?? "", maximum: range[2] ?? "", under: limit("under"), over: limit("over") };
}

function formatNumber({ minimum, maximum, under, over }) {
  const range = `number${minimum && ` from ${minimum}`}${maximum && ` to ${maximum}`}`;
  return [range, ...(under ? [`screen out: under ${under}`] : []), ...(over ? [`screen out: over ${over}`] : [])];
}

function formatCondition(condition) {
  return condition ? condition.answers.map((answer) => `only if: ${condition.name} = ${answer}`) : [];
}

export function formatLine({ name, optional, text, choices, number, condition }) {
  const parts = number ? formatNumber(number)
    : choices.map((choice) => `${choice.screened ? "screen out: " : ""}${choice.text.trim()}`);
  const question = [text.trim(), ...parts, ...formatCondition(condition)].join(` ${SEPARATOR} `);
  return name.trim() || optional ? `${name.trim()}${optional ? "?" : ""}: ${question}`.trim() : question;
}

export function parseText(text) {
  return text.split("\n").filter((line) => line.trim()).map(parseLine);
}

export function formatText(questions) {
  return questions.map(formatLine).join("\n");
}
