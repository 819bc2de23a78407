"""A campaign of systems led by a program."""

from tests.api.conftest import API
from tests.api.test_api import answer, hit_for, refused

CSV = "system,segment,output,source\nape,s,one,eins\nbee,s,one,eins\ncat,s,two,eins\n"
SETTINGS = {"name": "S", "question": "How good?", "items_per_hit": 3, "judgments_per_item": 4}


async def test_a_program_imports_systems_and_answers_about_outputs_that_differ(api_client):
    made = await api_client.post(f"{API}/campaigns", json=SETTINGS)
    address = f"{API}/campaigns/{made.json()['slug']}"
    kind = {"content-type": "text/csv"}
    assert (await api_client.post(f"{address}/items", content=CSV, headers=kind)).json()["imported"] == 3
    assert (await api_client.post(f"{address}/transitions", json={"action": "launch"})).status_code == 200
    hit = await hit_for(api_client, address)
    assert (hit["source"], hit["reference"]) == ("eins", None)
    assert sorted(item["text"] for item in hit["items"]) == ["one", "two"]
    refused(await answer(api_client, hit, scores=(10, 50, 90)), 422, "scores_unknown")
    given = {item["id"]: 70 if item["text"] == "one" else 20 for item in hit["items"]}
    assert (await answer(api_client, hit, scores=given)).status_code == 200
    posteriors = (await api_client.get(f"{address}/posteriors")).json()
    assert {one["id"]: round(100 * one["mean_score"]) for one in posteriors["posteriors"]} == {
        "ape": 70,
        "bee": 70,
        "cat": 20,
    }
    joined = await api_client.post(f"{address}/items", content="system,segment,output\ndoe,s,three\n", headers=kind)
    assert joined.json()["imported"] == 1
    assert (await api_client.get(f"{address}")).json()["items"] == 4


async def test_a_program_corrects_the_output_of_a_segment(api_client):
    made = await api_client.post(f"{API}/campaigns", json=SETTINGS)
    address = f"{API}/campaigns/{made.json()['slug']}"
    await api_client.post(f"{address}/items", content=CSV, headers={"content-type": "text/csv"})
    await api_client.post(f"{address}/transitions", json={"action": "launch"})
    corrected = {"id": "cat", "segment": "s", "text": "2"}
    assert (await api_client.put(f"{address}/items/text", json=corrected)).json() == {"id": "cat", "version": 2}
    refused(await api_client.put(f"{address}/items/text", json={"id": "cat", "text": "3"}), 422, "segment_missing")
    refused(await api_client.put(f"{address}/items/text", json=corrected | {"text": "one"}), 409, "output_taken")


async def test_a_program_asks_for_comparisons_per_prompt_and_pair(api_client):
    pairwise = {"name": "S", "question": "Which is better?", "design": "pairwise"}
    made = await api_client.post(f"{API}/campaigns", json=pairwise)
    address = f"{API}/campaigns/{made.json()['slug']}"
    wanted = {"comparisons_per_prompt_and_pair": 3}
    refused(await api_client.patch(address, json=wanted), 422, "nothing_compared")
    outputs = "system,segment,output\n" + "".join(f"{system},s{k},{system}{k}\n" for system in "ABC" for k in range(4))
    await api_client.post(f"{address}/items", content=outputs, headers={"content-type": "text/csv"})
    changed = (await api_client.patch(address, json=wanted)).json()
    assert changed["settings"]["judgments_per_item"] == 24  # 3 comparisons of 2 other systems on 4 prompts
    assert changed["comparisons"] == {
        "unit": "Comparisons per segment and pair",
        "per_prompt": 3.0,
        "systems": 3,
        "prompts": 4,
        "warning": "",
    }
    for wrong in ({"comparisons_per_prompt_and_pair": 0}, {"comparisons_per_prompt_and_pair": "3"}):
        refused(await api_client.patch(address, json=wrong), 422, "comparisons_wrong")
    refused(await api_client.patch(address, json=wanted | {"judgments_per_item": 5}), 422, "comparisons_wrong")
