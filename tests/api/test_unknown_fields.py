"""Fields and parameters that a request of the API has but that nothing reads, and those that it has twice: they are
refused, never dropped.
"""

import json
import re

from tests.api.conftest import API, PASSWORD
from tests.api.test_api import SETTINGS, answer, draft, hit_for, launched, refused

TELEMETRY = "TouchSchema"  # programs may send more of it than Easel stores


def problems(response):
    """Assert that a request is refused as invalid, and return its problems."""
    return [f"{problem['field']}: {problem['message']}" for problem in refused(response, 422, "invalid")["fields"]]


def referenced_schemas(description, part, found=None):
    """Return the names of all schemas that a part of the description refers to, directly or not."""
    found = set() if found is None else found
    for name in re.findall(r"#/components/schemas/(\w+)", json.dumps(part)):
        if name not in found:
            found.add(name)
            referenced_schemas(description, description["components"]["schemas"][name], found)
    return found


async def test_every_json_body_refuses_fields_that_it_does_not_know(api_client):
    description = (await api_client.get(f"{API}/openapi.json")).json()
    calls = [call for path in description["paths"].values() for call in path.values()]
    bodies = [call["requestBody"]["content"].get("application/json", {}) for call in calls if "requestBody" in call]
    schemas = {name: description["components"]["schemas"][name] for name in referenced_schemas(description, bodies)}
    lenient = [
        name
        for name, schema in schemas.items()
        if "properties" in schema and name != TELEMETRY and schema.get("additionalProperties") is not False
    ]
    assert lenient == []


async def test_a_misspelled_field_of_an_answer_is_refused_and_nothing_is_stored(api_client):
    hit = await hit_for(api_client, await launched(api_client))
    response = await api_client.post(
        f"{API}/hits/{hit['id']}/response", json={"annotator": "ann", "scores": [1, 2, 3], "coment": "Hard."}
    )
    assert problems(response) == ["coment: There is no such field"]
    assert (await answer(api_client, hit)).json()["repeated"] is False


async def test_a_misspelled_query_parameter_is_refused(api_client):
    items = f"{await draft(api_client)}/items"
    response = await api_client.get(items, params={"ofset": 10, "limit": 1})
    assert problems(response) == ["query.ofset: There is no such parameter. Did you mean offset?"]
    assert (await api_client.get(items, params={"offset": 10, "limit": 1})).status_code == 200


async def test_a_parameter_that_is_given_twice_is_refused_and_a_list_is_read(api_client):
    items = f"{await draft(api_client)}/items"
    response = await api_client.get(items, params=[("limit", "1"), ("limit", "2")])
    assert problems(response) == ["query.limit: Give this parameter only once"]
    tagged = await api_client.get(f"{API}/campaigns", params=[("tag", "a"), ("tag", "b")])
    assert problems(tagged) == ["query.tag: Give this parameter only once"]
    wide = "segment,A,B\ns1,x,y\n"
    headers = {"content-type": "text/csv"}
    systems = [("system", "A"), ("system", "B"), ("replace", "true")]
    read = await api_client.post(items, params=systems, content=wide, headers=headers)
    assert read.json()["imported"] == 2


async def test_parameters_of_requests_for_hits_consents_answers_and_tokens_are_refused(api_client):
    campaign = await launched(api_client)
    hit = await hit_for(api_client, campaign)
    bodies = {
        f"{campaign}/hits": {"annotator": "ann"},
        f"{campaign}/consents": {"annotator": "ann", "version": 0, "agreed": True},
        f"{API}/hits/{hit['id']}/response": {"annotator": "ann", "scores": [1, 2, 3]},
        f"{API}/tokens": {"name": "admin", "password": PASSWORD},
    }
    for address, body in bodies.items():
        refusal = await api_client.post(address, params={"annotator": "bea"}, json=body)
        assert problems(refusal) == ["query.annotator: There is no such parameter"], address
    assert (await answer(api_client, hit)).json()["repeated"] is False


async def test_a_name_that_occurs_twice_in_a_body_is_refused_and_nothing_is_stored(api_client):
    hit = await hit_for(api_client, await launched(api_client))
    first, second, third = (item["id"] for item in hit["items"])
    values = f'{{"{first}": 1, "{second}": 2, "{third}": 3, "{first}": 99}}'
    body = f'{{"annotator": "ann", "scores": {values}}}'
    headers = {"content-type": "application/json"}
    refusal = await api_client.post(f"{API}/hits/{hit['id']}/response", content=body, headers=headers)
    assert problems(refusal) == [f"{first}: This name appears twice"]
    assert (await answer(api_client, hit)).json()["repeated"] is False
    twice = '{"name": "Two", "question": "One?", "question": "Two?"}'
    refusal = await api_client.post(f"{API}/campaigns", content=twice, headers=headers)
    assert problems(refusal) == ["question: This name appears twice"]


async def test_a_score_out_of_range_is_named_by_its_place_without_the_names_of_types(api_client):
    hit = await hit_for(api_client, await launched(api_client))
    first = hit["items"][0]["id"]
    too_much = "Input should be less than or equal to 100"
    assert problems(await answer(api_client, hit, scores={first: 101})) == [f"scores.{first}: {too_much}"]
    assert problems(await answer(api_client, hit, scores=(101, 2, 3))) == [f"scores.0: {too_much}"]


async def test_a_body_that_is_not_sent_as_json_is_told_how_to_send_it(api_client):
    how = "body: Send a JSON object, with the header Content-Type: application/json"
    as_form = await api_client.post(f"{API}/campaigns", data=SETTINGS)
    assert problems(as_form) == [how]
    without_type = await api_client.post(f"{API}/campaigns", content=json.dumps(SETTINGS))
    assert problems(without_type) == [how]
