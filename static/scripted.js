// Runs before the first paint, so that nothing jumps. Where hit.js does not arrive, or this browser cannot read it, the plain
// form shows instead.
"use strict";

{
  const { classList } = document.documentElement;
  classList.add("scripted");
  document.addEventListener("DOMContentLoaded", () => { if (!classList.contains("started")) classList.remove("scripted"); });
}
