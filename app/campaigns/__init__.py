"""Campaigns: create, fill, launch and close them.

A campaign is a draft, then running, paused or finished. The room holds its settings (`CampaignSettings` in
`settings.py`, shown as a form by `form.py`), its items and systems (`items.py`, `outputs.py`), campaign files
(`campaign_file.py`, `campaign_zip.py`) and answers collected elsewhere (`responses_import.py`, `imported_hits.py`).
Researchers' pages are in `pages/`, the JSON endpoints in `api.py`.

Open `lifecycle.py` first: it creates, edits, copies and deletes campaigns and moves them from state to state.
"""
