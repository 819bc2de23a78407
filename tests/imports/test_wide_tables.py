"""Tables with a column for each system are read as outputs where the researcher says which columns are systems."""

import io
import json

import openpyxl
import pytest

from app.errors import Invalid
from tests.annotation.hits.campaigns import fetch_rows, fetch_value
from tests.campaigns.drafts import create_draft, import_file, import_items
from tests.campaigns.test_routes import create
from tests.imports.test_described import described

COLUMNS = ["segment", "source", "Alder", "Birch", "genre"]
ROWS = [["s1", "Hallo", "Hello", "Hullo", "chat"], ["s2", "Tschüss", "Bye", "", "chat"]]
SYSTEMS = ("Alder", "Birch")
OUTPUTS = [("s1", "Alder", "Hello", "Hallo"), ("s1", "Birch", "Hullo", "Hallo"), ("s2", "Alder", "Bye", "Tschüss")]
STORED = """
    SELECT s.external_id, i.external_id, o.shown, s.source FROM outputs o
    JOIN segments s ON s.campaign_id = o.campaign_id AND s.number = o.segment
    JOIN items i ON i.campaign_id = o.campaign_id AND i.number = o.item ORDER BY o.segment, o.item
"""


def table_text(separator=","):
    return "".join(separator.join(row) + "\n" for row in [COLUMNS, *ROWS])


def jsonl_text():
    return "".join(json.dumps(dict(zip(COLUMNS, row, strict=True))) + "\n" for row in ROWS)


@pytest.mark.parametrize(
    ("name", "content"), [("w.csv", table_text()), ("w.tsv", table_text("\t")), ("w.jsonl", jsonl_text())]
)
async def test_each_format_gives_a_row_for_each_output(engine, name, content):
    campaign = await create_draft(engine)
    receipt = await import_file(engine, campaign, content, name, systems=SYSTEMS)
    assert receipt.imported == 3
    assert await fetch_rows(engine, STORED) == OUTPUTS
    assert "Each of these columns is a system: Alder, Birch." in receipt.notes
    assert "Left out: genre." in receipt.notes


async def test_a_workbook_is_read_from_the_page(engine, researcher):
    workbook, file = openpyxl.Workbook(), io.BytesIO()
    sheet = workbook.create_sheet(index=0)
    for row in [COLUMNS, *ROWS]:
        sheet.append(row)
    workbook.save(file)
    address = await create(researcher)
    data = {"systems": list(SYSTEMS)}
    preview = await researcher.post(f"{address}/items/preview", data=data, files={"file": ("w.xlsx", file.getvalue())})
    assert "2 systems, 2 segments, 3 outputs" in preview.text
    await researcher.post(f"{address}/items", data=data, files={"file": ("w.xlsx", file.getvalue())})
    assert await fetch_rows(engine, STORED) == OUTPUTS


async def test_the_preview_offers_the_columns_as_systems(researcher):
    address = await create(researcher)
    page = (await researcher.post(f"{address}/items/preview", files={"file": ("w.csv", table_text())})).text
    offered = page.partition("These columns are systems")[2].partition("</details>")[0]
    for name in SYSTEMS:
        assert f'name="systems" value="{name}"' in offered
    assert 'name="systems" value="segment"' not in offered
    assert 'name="systems" value="source"' not in offered


def test_segments_are_named_by_a_chosen_column_or_by_their_rows():
    content = "name,A,B\nx,one,two\ny,three,four\n"
    assert described(content, systems=("A", "B"), identifier="name").segments == 2
    assert described(content, systems=("A", "B")).segments == 2
    first = described("id,A,B\nx,one,two\n", systems=("A", "B")).first_rows[0]
    assert first.values == {"system": "A", "segment": "x", "output": "one"}


@pytest.mark.parametrize(
    ("content", "systems", "code"),
    [
        ("segment,A,B\ns1,a,b\n", ("A", "C"), "column_unknown"),
        ("segment,source,A\ns1,x,a\n", ("source", "A"), "system_column_used"),
        ("segment,A,B\ns1,a,b\n", ("segment", "A"), "system_column_used"),
        ("segment,A,B\ns1,,\n", ("A", "B"), "output_empty"),
        ("segment,A,B\n,a,b\n", ("A", "B"), "segment_missing"),
        ("segment,A,B\ns1,a,b\ns1,c,d\n", ("A", "B"), "output_twice"),
    ],
)
async def test_what_cannot_be_read_is_refused_and_nothing_is_imported(engine, content, systems, code):
    campaign = await create_draft(engine)
    with pytest.raises(Invalid) as refused:
        await import_items(engine, campaign, content, systems=systems)
    assert refused.value.code == code
    assert await fetch_value(engine, "SELECT count(*) FROM items") == 0
