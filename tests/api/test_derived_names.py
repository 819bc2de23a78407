"""Programs and files may leave the name of a campaign out."""

from tests.annotation.hits.campaigns import fetch_value


async def test_a_program_sends_a_question_alone(api_client, engine):
    made = await api_client.post("/api/v1/campaigns", json={"question": "How often?"})
    assert (made.status_code, made.json()["slug"]) == (201, "how-often")
    assert made.json()["settings"]["name"] == "How often?"
    changed = await api_client.patch("/api/v1/campaigns/how-often", json={"name": "Verbs"})
    assert changed.json()["settings"]["name"] == "Verbs"
    changed = await api_client.patch("/api/v1/campaigns/how-often", json={"name": "", "question": "How rare?"})
    assert changed.json()["settings"]["name"] == "How rare?"
    assert await fetch_value(engine, "SELECT name FROM campaigns") == "How rare?"


async def test_a_file_has_a_question_alone(api_client):
    files = {"file": ("c.yaml", b"question: How often?\n")}
    made = await api_client.post("/api/v1/campaigns/files", files=files)
    assert made.status_code == 201, made.text
    written = await api_client.get("/api/v1/campaigns/how-often/file")
    assert "name: How often?\nquestion: How often?\n" in written.text
