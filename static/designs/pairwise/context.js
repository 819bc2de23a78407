// What both texts answer, such as a prompt, stays above them: the stylesheet says in which windows.

const MOST_OF_WINDOW = 0.4;    // a higher one scrolls away, so that the texts keep their room

let observer;

/** Follow the height of what stands above both texts, since their letters stay below it. */
export function followContext(hit) {
  observer?.disconnect();
  const context = hit.fieldset.closest(".hit").querySelector(":scope > .beside-items");
  const place = () => {
    context?.toggleAttribute("data-stays", context.offsetHeight <= MOST_OF_WINDOW * innerHeight);
    const isStaying = context && getComputedStyle(context).position === "sticky";
    document.documentElement.style.setProperty("--context", `${isStaying ? context.offsetHeight : 0}px`);
  };
  observer = new ResizeObserver(place);
  if (context) observer.observe(context);
  place();
}
