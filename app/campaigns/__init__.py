"""Campaigns: create, launch, pause, finish, copy and delete them.

A campaign is a draft, then running, paused or finished. Its settings are a `CampaignSettings` (`settings.py`), shown as
a form by `form.py`, read back by `form_input.py`, and written as YAML by `campaign_file.py`. `launch.py` checks a draft
and creates its first posteriors; `summaries.py` lists campaigns with their progress. Researchers' pages are in
`pages/`, with a preview of HITs that stores no answers, and JSON endpoints in `api/`. The items that a campaign asks
about are uploaded through `app.imports`.

Open `lifecycle.py` first: it creates, edits, copies and deletes campaigns and moves them from state to state.
"""
