"""A program gets no HIT for somebody who has not agreed to the campaign's consent."""

from tests.api.conftest import API
from tests.api.test_api import hit_for, launched, refused

TEXT = "We keep your answers."


async def says(api_client, address, **sent):
    return await api_client.post(f"{address}/consents", json={"annotator": "ann", "version": 1, "agreed": True} | sent)


async def test_a_program_is_told_to_ask_first_and_with_which_text(api_client):
    address = await launched(api_client, consent=TEXT)
    details = refused(await api_client.post(f"{address}/hits", json={"annotator": "ann"}), 409, "consent_needed")
    assert details == {"version": 1, "markdown": TEXT}
    assert (await says(api_client, address)).json() == {"version": 1, "agreed": True}
    assert await hit_for(api_client, address)


async def test_who_does_not_agree_gets_no_hit_and_may_agree_later(api_client):
    address = await launched(api_client, consent=TEXT)
    await says(api_client, address, agreed=False)
    refused(await api_client.post(f"{address}/hits", json={"annotator": "ann"}), 409, "consent_needed")
    await says(api_client, address)
    assert await hit_for(api_client, address)


async def test_a_changed_text_is_asked_again(api_client):
    address = await launched(api_client, consent=TEXT)
    await says(api_client, address)
    assert (await api_client.patch(address, json={"consent": "Another text."})).status_code == 200
    details = refused(await api_client.post(f"{address}/hits", json={"annotator": "ann"}), 409, "consent_needed")
    assert details == {"version": 2, "markdown": "Another text."}
    refused(await says(api_client, address), 422, "consent_changed")
    await says(api_client, address, version=2)
    assert await hit_for(api_client, address)


async def test_of_a_campaign_that_is_not_there_nobody_can_say_anything(api_client):
    refused(await says(api_client, f"{API}/campaigns/none"), 404, "campaign_not_found")


async def test_the_receipt_says_what_is_stored_and_nothing_else(api_client):
    address = await launched(api_client, consent=TEXT)
    for wrong in (0, 2, 99, 2**31 - 1):
        assert refused(await says(api_client, address, version=wrong), 422, "consent_changed") == {"version": 1}
    assert (await says(api_client, address)).json() == {"version": 1, "agreed": True}
    assert (await says(api_client, address)).json() == {"version": 1, "agreed": True}
    assert (await says(api_client, address, agreed=False)).json() == {"version": 1, "agreed": True}
    for wrong in (0, 2, 99):
        assert refused(await says(api_client, address, version=wrong), 422, "consent_changed") == {"version": 1}
        refused(await says(api_client, address, version=wrong, agreed=False), 422, "consent_changed")
    assert (await api_client.patch(address, json={"consent": "Another text."})).status_code == 200
    await says(api_client, address, version=2)
    assert (await says(api_client, address, version=1)).json() == {"version": 1, "agreed": True}
    refused(await says(api_client, address, version=3), 422, "consent_changed")


async def test_nobody_agrees_to_a_text_that_there_is_not(api_client):
    address = await launched(api_client)
    refused(await says(api_client, address, version=0), 422, "consent_changed")
