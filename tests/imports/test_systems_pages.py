"""Pages about campaigns of systems."""

from tests.annotation.hits.campaigns import create_annotator, submit_scores, try_to_lease_hit
from tests.annotation.hits.systems import create_campaign_of_systems, outputs_table
from tests.campaigns.test_routes import create, error_message, upload

CSV = outputs_table(above=True)


async def test_a_table_of_systems_is_told_before_it_is_imported(researcher):
    address = await create(researcher)
    page = await researcher.post(f"{address}/items/preview", files={"file": ("a.csv", CSV)})
    assert "4 systems, 6 segments, 24 outputs" in page.text
    assert "below its source and reference" in page.text
    assert "Column that annotators see" not in page.text
    wrong = await researcher.post(f"{address}/items/preview", files={"file": ("a.csv", CSV + "ape,s0,again,,\n")})
    assert "with a duplicate output for a segment: line 26" in " ".join(wrong.text.replace("</b>", "").split())


async def test_systems_are_imported_from_the_page_and_shown_by_segment(researcher):
    address = await create(researcher, items_per_hit="2")
    assert (await upload(researcher, address, CSV, shown="")).headers["location"] == f"{address}/items?done=imported"
    page = (await researcher.get(f"{address}/items")).text
    assert "4 systems, 6 segments" in page
    assert "ape on 3" in (await researcher.get(f"{address}/items?segment=s3")).text
    assert (await researcher.get(f"{address}/items?segment=none")).status_code == 200
    trial = (await researcher.get(f"{address}/try/hit")).text
    assert "source" in trial
    assert " on " in trial
    assert (await researcher.post(f"{address}/launch")).headers["location"] == f"{address}/share?done=launched"


async def test_the_mean_of_each_system_stands_by_segment(researcher, engine):
    campaign = await create_campaign_of_systems(engine)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    await submit_scores(engine, me, hit, scores=[12.0, 88.0])
    address = f"/admin/campaigns/{campaign.slug}"
    page = (await researcher.get(f"{address}/items?segment=s{hit.segment}")).text
    assert ">88.0</td>" in page
    assert 'heat-9"' in page
    assert 'heat-1"' in page
    assert "Systems" in (await researcher.get(address)).text
    assert "segments.csv" in (await researcher.get(f"{address}/export")).text


async def test_a_system_joins_from_the_page(researcher, engine):
    campaign = await create_campaign_of_systems(engine)
    address = f"/admin/campaigns/{campaign.slug}"
    assert "Add a system" in (await researcher.get(f"{address}/items")).text
    await create_annotator(engine, campaign)
    assert (await researcher.get(address)).status_code == 200  # so that this process follows the campaign
    done = await upload(researcher, address, outputs_table(("elk",)), shown="")
    assert done.headers["location"] == f"{address}/items?done=imported"
    page = (await researcher.get(address)).text
    assert "elk" in page
    assert "0 of 50" in page
    assert "already" in error_message(await upload(researcher, address, outputs_table(("elk",)), shown=""))
