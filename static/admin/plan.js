// The plan is worked out on the server, which streams its progress as lines of JSON. Stop, or leaving the page, ends it; the browser asks before that.

import { localizeTimes } from "./times.js";

const form = document.querySelector("form[data-plan]");
const find = (name) => document.querySelector(`[data-${name}]`);

/** Let the number of judgments per item be chosen on the curve: by the slider, by dragging, or as a number. */
function makeBudgetChooser(budget) {
  if (!budget) return;
  const [number, range] = budget.querySelectorAll("[type=number], [type=range]");
  const curve = budget.closest("figure").querySelector("svg");
  const marker = curve.querySelector(".chosen");
  const choices = [...budget.querySelectorAll("data")];
  const show = (value) => {
    const choice = choices.find((one) => one.value === String(value));
    number.value = value;
    range.value = value;
    budget.querySelector("output").textContent = choice?.textContent ?? "";
    budget.querySelector("button").textContent = value ? `Use ${value}` : "Use this number";
    marker.toggleAttribute("hidden", !choice);
    if (choice) marker.setAttribute("transform", `translate(${choice.dataset.x} 0)`);
  };
  const choiceAt = ({ clientX }) => {
    const { left, width } = curve.getBoundingClientRect();
    const x = ((clientX - left) / width) * curve.viewBox.baseVal.width;
    const distance = (choice) => Math.abs(choice.dataset.x - x);
    return choices.reduce((nearest, choice) => (distance(choice) < distance(nearest) ? choice : nearest));
  };
  range.hidden = false;
  number.addEventListener("input", () => show(number.value));
  range.addEventListener("input", () => show(range.value));
  curve.classList.add("draggable");
  curve.addEventListener("pointerdown", (event) => {
    curve.setPointerCapture(event.pointerId);
    show(choiceAt(event).value);
  });
  curve.addEventListener("pointermove", (event) => {
    if (curve.hasPointerCapture(event.pointerId)) show(choiceAt(event).value);
  });
  show(number.value);
}

if (form) {
  const planning = find("planning");
  const bar = planning.querySelector("progress");
  const status = planning.querySelector("[role=status]");

  const showProblem = (message = "") => {
    find("problem").textContent = message;
    find("problem").hidden = !message;
  };

  addEventListener("beforeunload", (event) => { if (!planning.hidden) event.preventDefault(); });

  const setBusy = (isBusy) => {
    planning.hidden = !isBusy;
    form.querySelector("button").disabled = isBusy;
  };

  /** Show a line of the reply; return whether it is the last one. */
  const showReport = (report) => {
    if (report.runs !== undefined) {
      bar.value = report.runs;
      status.textContent = `${report.runs} of ${bar.max} campaigns simulated`;
    }
    if (report.error) showProblem(report.error.message);
    if (report.found) {
      find("found").innerHTML = report.found;
      localizeTimes(find("found"));
      makeBudgetChooser(find("budget"));
    }
    return Boolean(report.found || report.error);
  };

  /** Show the lines of a reply as they arrive; return whether it was complete. */
  const showReports = async (reply) => {
    const reader = reply.body.getReader();
    const decoder = new TextDecoder();
    let isComplete = false;
    for (let rest = "", chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      const lines = (rest + decoder.decode(chunk.value, { stream: true })).split("\n");
      rest = lines.pop();
      for (const line of lines) isComplete = showReport(JSON.parse(line)) || isComplete;
    }
    return isComplete;
  };

  /** Name the chosen assumptions in the line above their fields. */
  const showAssumptions = () => {
    for (const echo of form.querySelectorAll("[data-echo]")) {
      const field = form.elements[echo.dataset.echo];
      echo.textContent = field.selectedOptions?.[0].text ?? (field.value || echo.dataset.empty);
    }
  };
  form.addEventListener("input", showAssumptions);
  showAssumptions();

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const address = `${location.pathname}?${new URLSearchParams(new FormData(form))}`;
    const stopping = new AbortController();
    planning.querySelector("button").onclick = () => stopping.abort();
    showProblem();
    bar.removeAttribute("value");
    status.textContent = "Waiting for the server …";
    setBusy(true);
    try {
      const reply = await fetch(address, { headers: { "x-easel": "fetch", accept: "application/json" }, signal: stopping.signal });
      if (!reply.ok) showProblem((await reply.json()).error.message);
      else if (!await showReports(reply)) showProblem("Planning stopped early. Nothing has changed. Try again.");
      history.replaceState(null, "", address);
    } catch {
      showProblem(stopping.signal.aborted ? "Stopped. Nothing has changed." : "The connection was lost. Nothing has changed. Try again.");
    } finally {
      setBusy(false);
    }
  });
}

makeBudgetChooser(find("budget"));
