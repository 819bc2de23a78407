"""Annotators that are programs, such as language models: which of them gave an answer."""

import csv

from tests.api.test_api import answer, hit_for, launched


async def test_the_export_of_assignments_has_the_id_that_the_program_gave_each_annotator(api_client):
    address = await launched(api_client)
    for judge in ("judge-a 2026-01", "judge-b 2026-03"):
        hit = await hit_for(api_client, address, judge)
        assert (await answer(api_client, hit, judge)).status_code == 200
    rows = [*csv.DictReader((await api_client.get(f"{address}/export/assignments")).text.splitlines())]
    assert [(row["name"], row["assignment"]) for row in rows] == [("A1", "judge-a 2026-01"), ("A2", "judge-b 2026-03")]


async def test_no_other_export_has_that_id(api_client):
    address = await launched(api_client)
    await answer(api_client, await hit_for(api_client, address, "judge-a"), "judge-a")
    for export in ("responses", "annotators", "items", "visits"):
        assert "judge-a" not in (await api_client.get(f"{address}/export/{export}")).text
