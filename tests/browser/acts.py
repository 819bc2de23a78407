"""Acts of annotators on a HIT page, and what the page shows them."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Literal

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import ElementHandle, FloatRect, Frame, Locator, Page, expect

SUBMIT = ".answer .primary"
# An animation that another one replaces never finishes, it is cancelled.
AT_REST = "() => Promise.allSettled(document.getAnimations().map(animation => animation.finished)).then(() => null)"
# Away from the strip, which may cover it; its size once nothing moves any more.
CENTRED = f"""async (rail) => {{
  rail.scrollIntoView({{ block: "center" }});
  await ({AT_REST})();
  const {{ width, height }} = rail.getBoundingClientRect();
  return [width, height];
}}"""
SCORES = """rows => rows.map((row) => {
  const placed = row.querySelector(".thumb")?.checkVisibility({ visibilityProperty: true });
  return placed ? Number(row.querySelector("input").value) : null;
})"""
COLOURS = ["color-contrast", "link-in-text-block"]  # nine tenths of the work of axe-core
# Of a result that has also what was passed, most of the time goes into carrying it here.
FIND_ALL_BUT_COLOURS = """async (colours) => {
  const rules = Object.fromEntries(colours.map((rule) => [rule, { enabled: false }]));
  return (await axe.run({ rules, resultTypes: ["violations"] })).violations;
}"""
# A look is the way from the root to a text, each step with its classes and with what it adds to colours; here it is the
# number of all that. What is placed freely may lie on anything, so no other has its look.
FIND_COLOURS = """async ({ colours, passed }) => {
  const styles = ["color", "backgroundColor", "backgroundImage", "opacity", "filter", "visibility", "fontSize",
    "fontWeight", "textShadow", "textDecorationLine"];
  axe.checkedLooks ??= new Set(passed.split(" ").map(Number));
  axe.freelyPlaced ??= 0;
  const numberOf = (text) => {
    let high = 0xdeadbeef, low = 0x41c6ce57;
    for (let place = 0; place < text.length; place += 1) {
      const code = text.charCodeAt(place);
      high = Math.imul(high ^ code, 2654435761);
      low = Math.imul(low ^ code, 1597334677);
    }
    return (2 ** 21) * (high >>> 0) + (low >>> 11);
  };
  const hasWords = (element) => [...element.childNodes]
    .some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  const looks = new Map([[null, { number: 0, isFree: false }]]);
  const lookOf = (element) => {
    if (!looks.has(element)) {
      const style = getComputedStyle(element);
      const onto = lookOf(element.parentElement);
      const isFree = ["absolute", "fixed"].includes(style.position) || element instanceof SVGElement;
      const isInText = element.localName === "a" && hasWords(element.parentElement);
      const kind = [element.localName, element.getAttribute("class"), style.position, isInText];
      const own = [...kind, ...styles.map((name) => style[name]), isFree ? (axe.freelyPlaced += 1) : ""];
      looks.set(element, { number: numberOf([onto.number, ...own].join("|")), isFree: isFree || onto.isFree });
    }
    return looks.get(element);
  };
  const hasText = (element) => element.matches("input, select, textarea") || hasWords(element);
  const include = [...document.body.querySelectorAll("*")].filter((element) => {
    if (!hasText(element) || !element.checkVisibility()) return false;
    const { number } = lookOf(element);
    return !axe.checkedLooks.has(number) && axe.checkedLooks.add(number);
  });
  if (!include.length) return { violations: [], passed: [] };
  const wanted = { runOnly: colours, resultTypes: ["violations", "passes"], elementRef: true };
  const found = await axe.run({ include }, wanted);
  const wrong = found.violations.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => ({ html })) }));
  if (wrong.length) return { violations: wrong, passed: [] };
  const contrasts = found.passes.filter((rule) => rule.id === "color-contrast").flatMap((rule) => rule.nodes);
  const passedLooks = contrasts.map(({ element }) => looks.get(element)).filter((look) => look && !look.isFree);
  return { violations: [], passed: passedLooks.map(({ number }) => number) };
}"""
# Of all documents: the same text on the same ground has the same contrast there.
PASSED_LOOKS: set[int] = set()
PATIENT_MS = 30_000  # only a test that fails waits so long; a busy machine takes its time


def sliders(page: Page | Frame) -> Locator:
    return page.locator(".scripted .row input")


async def open_hit(page: Page, address: str) -> None:
    """Arrive where a HIT is shown at once, as from Prolific; it is ready when this returns."""
    await page.goto(address)
    await wait_for_hit(page)


async def start_by_link(page: Page, link: str) -> None:
    """Arrive by link, where one presses a button first; the HIT is ready when this returns."""
    await page.goto(link)
    await page.get_by_role("button", name="Start").click()
    await wait_for_hit(page)


async def wait_for_hit(page: Page | Frame) -> None:
    """Wait for the button that ends a HIT: all before it has come, and the script shows neither before both work."""
    await page.locator(SUBMIT).wait_for()


async def wait_for_value(read: Callable[[], Awaitable[Any]], expected: Any) -> None:
    """Wait until `read` gives what is expected: what a person does shows a moment later."""
    latest = time.monotonic() + PATIENT_MS / 1000
    while (found := await read()) != expected and time.monotonic() < latest:  # noqa: ASYNC110  (the page changes it)
        await asyncio.sleep(0.02)
    assert found == expected


async def item_texts(page: Page | Frame) -> list[str]:
    await wait_for_hit(page)
    return [text.strip() for text in await page.locator(".row .text").all_inner_texts()]


async def expect_ranks(page: Page | Frame, words: Sequence[str]) -> None:
    await expect(page.locator(".row .rank")).to_have_text(words)


async def expect_scores(page: Page | Frame, expected: Sequence[Any]) -> None:
    """Wait until the rows show these scores, top to bottom; None for no thumb."""
    await wait_for_value(lambda: entered_scores(page), list(expected))


async def expect_score(page: Page | Frame, row: int, expected: Any) -> None:
    async def shown() -> int | None:
        return (await entered_scores(page))[row]

    await wait_for_value(shown, expected)


async def entered_scores(page: Page | Frame) -> list[int | None]:
    """Return the score that each row shows, top to bottom; None where there is no thumb."""
    shown: list[int | None] = await page.locator(".row").evaluate_all(SCORES)
    return shown


async def click_at(page: Page | Frame, row: int, score: float) -> None:
    """Click on a row's rail at `score`."""
    await click_rail(page.locator(".row .rail").nth(row), score)


async def click_rail(rail: Locator, score: float) -> None:
    width, height = await rail.evaluate(CENTRED)
    await rail.click(position={"x": width * score / 100, "y": height / 2}, force=True)


async def score_all(page: Page | Frame, values: Sequence[float]) -> None:
    for row, value in enumerate(values):
        await click_at(page, row, value)


async def bounding_box(element: Locator) -> FloatRect:
    """Where an element is once nothing moves any more."""
    await element.evaluate(AT_REST)
    box = await element.bounding_box()
    assert box
    return box


async def point_on_strip(page: Page, score: float) -> tuple[float, float]:
    box = await bounding_box(page.locator(".strip > .rail"))
    return box["x"] + box["width"] * score / 100, box["y"] + box["height"] - 9


async def grab(page: Page, selector: str) -> None:
    box = await bounding_box(page.locator(selector))
    await page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    await page.mouse.down()


async def press_submit(page: Page | Frame) -> None:
    """Submit and wait until this HIT is gone from the page."""
    form: ElementHandle | None = await page.locator("form.answer").element_handle()
    await page.locator(SUBMIT).click()
    await page.wait_for_function("form => !form.isConnected", arg=form)


async def each_width(page: Page, *widths: int) -> AsyncIterator[int]:
    """The same page as its window takes one width after the other."""
    for width in widths:
        await page.set_viewport_size({"width": width, "height": 900 if width > 500 else 844})
        yield width


async def violations(page: Page, *, colours: bool = True) -> str:
    """Return the findings of axe-core in light, and those about colours also in dark, as text.

    Of texts that look alike, the colours of one are checked.
    """
    await page.wait_for_load_state()
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(Axe().axe_script)
    await _show_in_scheme(page, "light")
    rules = {"light": await page.evaluate(FIND_ALL_BUT_COLOURS, COLOURS)}
    if colours:
        rules["light"] += await _violations_of_colours(page)
        await _show_in_scheme(page, "dark")
        rules["dark"] = await _violations_of_colours(page)
        await page.emulate_media(color_scheme="light")
    return "\n".join(
        f"{rule['id']} ({scheme}): {json.dumps([node['html'] for node in rule['nodes']])}"
        for scheme, found in rules.items()
        for rule in found
    )


async def _show_in_scheme(page: Page, scheme: Literal["light", "dark"]) -> None:
    await page.emulate_media(color_scheme=scheme)
    await page.evaluate(AT_REST)


async def _violations_of_colours(page: Page) -> list[dict[str, Any]]:
    checks = {"colours": COLOURS, "passed": " ".join(map(str, PASSED_LOOKS))}
    found = await page.evaluate(FIND_COLOURS, checks)
    PASSED_LOOKS.update(map(int, found["passed"]))
    rules: list[dict[str, Any]] = found["violations"]
    return rules
