// Tables as text: cells between commas, semicolons or tabs, in quotation marks where they need them.

/** Return the columns of a table and its rows: their cells, and the line on which each begins. Return undefined if it is
 * not clear what its quotation marks mean, or if a row has more cells than there are columns. */
export function parseTable(text) {
  const header = text.trimStart().split("\n", 1)[0];
  const separator = ["\t", ";"].find((sign) => header.includes(sign)) ?? ",";
  if (separator !== "," && text.includes('"')) return undefined;
  const records = parseRecords(text.trim().replaceAll("\r\n", "\n"), separator);
  if (!records) return undefined;
  const [first, ...others] = records;
  const columns = first.cells.map((cell) => cell.trim());
  const rows = others.filter(({ cells }) => cells.length > 1 || cells[0].trim());
  return rows.every(({ cells }) => cells.length <= columns.length) ? { columns, rows } : undefined;
}

function parseRecords(text, separator) {
  const records = [{ line: 1, cells: [""] }];
  let line = 1;
  let isQuoted = false;
  for (let place = 0; place < text.length; place += 1) {
    const [sign, next] = [text[place], text[place + 1]];
    const { cells } = records.at(-1);
    if (sign === "\n") line += 1;
    if (isQuoted && sign === '"' && next === '"') {
      cells[cells.length - 1] += sign;
      place += 1;
    } else if (isQuoted && sign === '"') {
      if (![separator, "\n", undefined].includes(next)) return undefined;
      isQuoted = false;
    } else if (!isQuoted && sign === '"') {
      if (cells.at(-1)) return undefined;
      isQuoted = true;
    } else if (!isQuoted && sign === separator) cells.push("");
    else if (!isQuoted && sign === "\n") records.push({ line, cells: [""] });
    else cells[cells.length - 1] += sign;
  }
  return isQuoted ? undefined : records;
}

/** Return a table as text, with commas. */
export function formatTable(columns, rows) {
  return [columns, ...rows].map((cells) => cells.map(formatCell).join(",")).join("\n");
}

function formatCell(cell) {
  return /[",;\t\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
