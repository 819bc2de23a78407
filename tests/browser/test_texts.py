"""Texts on pages are what was uploaded: every space, tab and line, formulas typeset where that is asked for."""

from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import expect

from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.designs.registry import DESIGNS
from app.imports import items
from tests.browser.acts import open_hit, press_submit, score_all, violations, wait_for_hit
from tests.browser.conftest import Task

CODE = [
    "    return x + 1\n    # done",
    "def f(x):\n\treturn x",
    "  if a:\n      b()",
    "x = 1",
    "y  =   2",
    "\ta\tb   c\n\n\n  d",
    "שלום   עולם\n    שורה",
    "  我喜歡\n\u3000\u3000貓",
    "<b>  &lt;  </b>",
    r"C:\new\(x86)  *a*",
]
SHOWN = "elements => elements.map(element => element.innerText)"
EULER = r"By Euler, $e^{i\pi}+1=0$ and $$\int_0^1 x^2\,dx=\frac13$$ so \(a_0\) costs $5 or $6, and \[\notamacro{x}\]"


@pytest_asyncio.fixture
async def uploaded(served, origin):
    """Makes a running campaign of a table: `await uploaded(table, "a.csv", design="rating")`."""

    async def make(table: str, name: str, **settings: Any) -> Task:
        now = datetime.now(UTC)
        values: dict[str, Any] = {"name": "Texts", "question": "How good?", "judgments_per_item": 3, "welcome": False}
        values["repeat_items"] = True
        async with served.begin() as connection:
            row = await lifecycle.create_draft_campaign_or_refuse(
                connection, CampaignSettings(**values | settings), now=now
            )
            await items.import_items_and_return_receipt(connection, row.slug, BytesIO(table.encode()), name, max_mb=4)
            row = await lifecycle.change_campaign_status_or_refuse(connection, row.slug, "launch", now=now)
        return Task(served, origin, row)

    return make


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def table_of(texts: list[str]) -> str:
    return "id,text\n" + "".join(f"{number},{quoted(text)}\n" for number, text in enumerate(texts))


@pytest.mark.parametrize("design", DESIGNS)
async def test_annotators_see_every_space_tab_and_line_in_every_way_of_asking(uploaded, visit, design):
    count = DESIGNS[design].items_per_hit[-1]
    more = {"design_settings": {"baseline": "0"}} if design == "baseline" else {}
    campaign = await uploaded(table_of(CODE), "a.csv", design=design, items_per_hit=count, **more)
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    shown = await page.locator(".hit .text").evaluate_all(SHOWN)
    assert len(shown) >= count
    own = [text for text in shown if text != "An item of average quality"]
    assert set(own) <= set(CODE)
    assert len(set(own)) == count


async def test_what_stands_beside_items_keeps_its_spaces_and_so_do_differences(uploaded, visit):
    table = f"id,text,s,r\n1,{quoted(CODE[0])},{quoted(CODE[1])},{quoted(CODE[2])}\n"
    columns: dict[str, Any] = {"source_column": "s", "reference_column": "r", "items_per_hit": 1, "design": "rating"}
    campaign = await uploaded(table, "a.csv", **columns)
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    assert await page.locator(".beside-items .beside-text").evaluate_all(SHOWN) == [CODE[1], CODE[2]]
    assert await page.locator(".hit .text").evaluate_all(SHOWN) == [CODE[0]]
    before = table.replace(quoted(CODE[2]), quoted("    return x\n    # done"))
    marked = await uploaded(before, "a.csv", **columns | {"differences": "reference"})
    await open_hit(page, marked.prolific())
    assert await page.locator(".hit .text ins").count() == 1
    words = "elements => elements.map(element => [...element.querySelectorAll('.visually-hidden')]"
    words += ".forEach(gone => gone.remove()) ?? element.innerText)"
    assert await page.locator(".hit .text").evaluate_all(words) == [CODE[0]]


async def test_researchers_see_them_too(uploaded, visit, cookie):
    campaign = await uploaded(table_of(CODE), "a.csv", design="rating")
    visitor = await visit()
    await visitor.page.context.add_cookies([cookie])
    await visitor.page.goto(f"{campaign.origin}/admin/campaigns/{campaign.row.slug}/items")
    assert await visitor.page.locator("td .as-uploaded").evaluate_all(SHOWN) == CODE
    assert await violations(visitor.page) == ""


@pytest.mark.parametrize("content", ["text", "markdown", "html"])
async def test_formulas_are_typeset_with_their_source_for_screen_readers(uploaded, visit, content):
    campaign = await uploaded(
        table_of([EULER] * 3), "a.csv", design="rating", items_per_hit=1, content=content, latex=True,
        question="How clear is $x^2$?", instructions="Look at $y_1 * y_2$.",
    )  # fmt: skip
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    text = page.locator(".row .text")
    await expect(text.locator(".math.typeset")).to_have_count(3)
    await expect(text.locator(".katex-display")).to_have_count(1)
    assert await text.locator("annotation").all_text_contents() == [
        r"e^{i\pi}+1=0", r"\int_0^1 x^2\,dx=\frac13", "a_0",
    ]  # fmt: skip
    await expect(text).to_contain_text(r"costs $5 or $6, and \[\notamacro{x}\]")
    await expect(page.locator("#question .katex")).to_have_count(1)
    await expect(page.locator(".instructions annotation")).to_have_text("y_1 * y_2")
    fonts = await page.evaluate("document.fonts.ready.then(fonts => [...fonts].some(font => font.status == 'loaded'))")
    assert fonts
    await score_all(page, [50])
    await press_submit(page)
    await expect(page.locator(".row .text .math.typeset")).to_have_count(
        3
    )  # of the next HIT, which the script puts there


async def test_hostile_formulas_run_nothing_and_stay_in_their_place(uploaded, visit, origin):
    hostile = [
        r"$\href{javascript:window.hacked=1}{x}$ $\url{javascript:window.hacked=1}$",
        r"$\includegraphics{https://example.org/a.png}$ $\htmlStyle{position:fixed;inset:0}{x}$",
        r"$\def\a{\a\a}\a$ $\def\b#1{#1#1#1#1}\b{\b{\b{\b{\b{\b{x}}}}}}$",
        r"$\rule{100000em}{100000em}$ $\kern-99999em x$ $\raisebox{-99999em}{x}$",
        r"$\text{<img src=x onerror=window.hacked=1>}$",
        "$" + "{" * 900 + "x" + "}" * 900 + "$",
        "".join(rf"$\sqrt{{{k}}}$ " for k in range(400)),
        "$$" + r"\begin{matrix}" * 60 + "$$",
    ]
    campaign = await uploaded(table_of(hostile), "a.csv", design="rating", items_per_hit=8, latex=True)
    person = await visit(java_script_enabled=True, requests_noted=True)
    await open_hit(person.page, campaign.prolific())
    assert await person.page.evaluate("window.hacked") is None
    assert [url for url in person.requested if not url.startswith((origin, "data:,"))] == []
    width = await person.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 1280
    top = await person.page.evaluate("document.elementFromPoint(640, 20).closest('.masthead') !== null")
    assert top


async def test_without_scripts_formulas_are_their_source(uploaded, visit):
    campaign = await uploaded(table_of([EULER]), "a.csv", design="rating", items_per_hit=1, latex=True)
    page = (await visit(java_script_enabled=False)).page
    await page.goto(campaign.prolific())
    assert "".join((await page.locator(".row .text").inner_text()).split()) == "".join(EULER.split())


async def test_pages_without_formulas_load_nothing_for_them(uploaded, visit):
    campaign = await uploaded(table_of(["$x$"]), "a.csv", design="rating", items_per_hit=1)
    person = await visit(requests_noted=True)
    await open_hit(person.page, campaign.prolific())
    assert not [url for url in person.requested if "katex" in url or "latex" in url]
    await expect(person.page.locator(".row .text")).to_have_text("$x$")


async def test_messages_of_a_chat_are_read_one_below_the_other(uploaded, visit):
    chat = (
        '{"id": 1, "messages": [{"role": "user", "content": "What?"}, {"role": "assistant", "content": "  a\\n  b"}]}\n'
    )
    campaign = await uploaded(chat, "a.jsonl", design="rating", items_per_hit=1)
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    assert await page.locator(".row .text").evaluate_all(SHOWN) == ["user: What?\n\nassistant:   a\n  b"]


async def test_texts_of_100000_characters_are_folded_and_can_be_judged(uploaded, visit):
    line = "A long text has many words in it, and each line ends somewhere.\n"
    texts = [(line * 1_600)[:99_990] + f"end {k}" for k in range(3)]
    campaign = await uploaded(table_of(texts), "a.csv", items_per_hit=3)
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    boxes = [await row.bounding_box() for row in await page.locator(".row").all()]
    assert all(box and box["height"] < 600 for box in boxes)
    await page.locator(".row").first.get_by_role("button", name="Show all").click()
    assert (await page.locator(".row .text").first.inner_text())[-5:-1] == "end "
    await page.locator(".row").first.get_by_role("button", name="Show less").click()
    await score_all(page, [10, 50, 90])
    await press_submit(page)
    await wait_for_hit(page)
    assert len(await campaign.responses()) == 1
