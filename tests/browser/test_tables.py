"""The preview of a table in a real browser: an encoding is chosen, marks and columns are told, a receipt is left."""

from playwright.async_api import expect

from tests.browser.acts import violations
from tests.browser.test_admin import Enter, create, enter

__all__ = ["enter"]

GERMAN = (
    'id,text,alpha,beta\r\ns1,Der Hund schläft.,2,3\r\ns2,Grüße aus Köln.,1,1\r\ns3,"Er sagte ""ja"".",1,1\r\n'
).encode("cp1252")
STRAY = b'id,text\ns1,"Well begun\ns2,Plain.\ns3,Ends here"\ns4,ok\n'


def file(name: str, content: bytes) -> dict[str, object]:
    return {"name": name, "mimeType": "text/csv", "buffer": content}


async def test_an_encoding_is_chosen_by_its_sample_and_priors_by_a_box(enter: Enter) -> None:
    page = await enter()
    await create(page, "German")
    await page.get_by_label("File", exact=True).set_input_files(file("a.csv", GERMAN))
    await page.get_by_label("Windows-1252: Grüße aus Köln.").click()  # not `check`: the question goes with its answer
    await expect(page.get_by_role("cell", name="Grüße aus Köln.")).to_be_visible()
    await expect(page.get_by_label("Encoding")).to_have_value("windows-1252")
    priors = page.get_by_label("alpha and beta: the prior of each item")
    await expect(priors).not_to_be_checked()
    assert await violations(page) == ""
    await priors.check()
    await expect(page.get_by_text("All rows can be imported.")).to_be_visible()
    await expect(priors).to_be_checked()
    await page.get_by_role("button", name="Import 3 items").click()
    await page.wait_for_url("**/items?done=imported")
    receipt = page.locator(".notice").filter(has_text="Imported 3 items.")
    await expect(receipt).to_contain_text("Read as Windows-1252.")
    await expect(receipt).to_contain_text("“alpha” and “beta”: the prior of each item.")
    assert await violations(page) == ""


async def test_what_quotation_marks_are_for_is_chosen_and_can_be_changed(enter: Enter) -> None:
    page = await enter()
    await create(page, "Marks")
    await page.get_by_label("File", exact=True).set_input_files(file("a.csv", STRAY))
    await page.get_by_label("They are part of the text").click()
    await expect(page.get_by_text("4 rows", exact=True)).to_be_visible()
    assert await violations(page) == ""
    await page.get_by_label("Quotation marks").select_option("cells")
    await expect(page.get_by_text("2 rows", exact=True)).to_be_visible()
    await expect(page.get_by_label("Quotation marks")).to_be_focused()


async def test_a_removed_file_brings_back_the_pasted_text(enter: Enter) -> None:
    page = await enter()
    await create(page, "Requests")
    pasted = page.get_by_label("Or paste them")
    await pasted.fill("Please send it.\nSend it now")
    await page.get_by_label("File", exact=True).set_input_files(file("a.csv", b"id,text\n1,one\n"))
    await expect(page.get_by_text("1 row", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Remove file").click()
    await expect(page.get_by_text("2 rows", exact=True)).to_be_visible()
    await expect(page.get_by_role("button", name="Remove file")).to_be_hidden()
    await expect(pasted).to_have_value("Please send it.\nSend it now")
    assert await violations(page) == ""
    await page.get_by_role("button", name="Import 2 items").click()
    await page.wait_for_url("**/items?done=imported")


async def test_a_table_that_cannot_be_read_is_read_as_lines_by_a_press(enter: Enter) -> None:
    page = await enter()
    await create(page, "Lines")
    lines = b"Please send it.\nSend it now\nCould you, perhaps, send it?\n"
    await page.get_by_label("File", exact=True).set_input_files(file("a.csv", lines))
    await expect(page.get_by_text("Line 3: this row has 3 cells")).to_be_visible()
    assert await violations(page) == ""
    await page.get_by_role("button", name="Read it as one text per line").click()
    await expect(page.get_by_text("3 rows", exact=True)).to_be_visible()
    await expect(page.get_by_label("Read as")).to_have_value("lines")
    await page.get_by_label("Read as").select_option("table")
    await expect(page.get_by_text("Line 3: this row has 3 cells")).to_be_visible()
    await page.get_by_label("Read as").select_option("lines")
    await page.get_by_role("button", name="Import 3 items").click()
    await page.wait_for_url("**/items?done=imported")
