// Shows a question that depends on an earlier answer only while that answer is given. Without this script all questions
// stand there, each with the answer that it depends on.
"use strict";

{
  const form = document.querySelector(".questions-once form");

  /** Show and ask the questions that follow from the answers so far; what is not asked has no answer, and is not sent. */
  const update = () => {
    for (const question of form.querySelectorAll("[data-asked-after]")) {
      const answer = new FormData(form).get(question.dataset.askedAfter);
      const isAsked = question.dataset.answers.split("|").includes(answer);
      question.hidden = !isAsked;
      for (const control of question.querySelectorAll("input, select")) {
        control.disabled = !isAsked;
        control.required = isAsked && "required" in control.dataset;
      }
    }
  };

  form.addEventListener("change", update);
  addEventListener("pageshow", update);                                       // also when Back brings the answers again
  update();
}
