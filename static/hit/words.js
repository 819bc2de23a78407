// What scripts say, in the language of the page: `words("%(left)s left", { left: 3 })`. Its catalogue comes with the page,
// by the English words; a page in English has none.

const catalogue = JSON.parse(document.getElementById("words")?.textContent ?? "{}");

export function words(message, values = {}) {
  return (catalogue[message] ?? message).replace(/%\((\w+)\)s/g, (whole, name) => values[name] ?? whole);
}
