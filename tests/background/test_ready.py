"""`/ready` shows all background work of the process, and a part that fails takes no requests away from it."""

PARTS = {"revisions", "alerts", "alert messages", "scans", "rehearsals", "annotator comparisons", "live pages"}


async def test_ready_names_all_background_work(client):
    checks = (await client.get("/ready")).json()["checks"]
    assert set(checks) >= PARTS
    assert all(check["ok"] for check in checks.values())


async def test_background_work_that_fails_is_shown_and_requests_still_come(app, client):
    async def fails():
        raise ValueError("about a secret")

    app.state.comparisons.tasks.start(7, fails)
    await app.state.comparisons.tasks.wait()
    reply = await client.get("/ready")
    assert reply.status_code == 200
    shown = reply.json()["checks"]["annotator comparisons"]
    assert shown == {"ok": False, "detail": "1 failed lately (ValueError)."}
