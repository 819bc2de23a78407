"""Campaigns: create, launch, pause, finish, copy and delete them.

A campaign is a draft, then running, paused or finished. Its settings are a `CampaignSettings` (`settings.py`). Pages
ask for them in steps (`form_sections.py`), each a form (`form.py`) that is read by `step_input.py` and stored by
`settings_edits.py`; `needs.py` turns a researcher's need into a goal and a selection rule. `campaign_file.py` writes
settings as YAML. `launch.py` checks a draft and creates its first posteriors; `empty_campaigns.py` reverts a launch;
`summaries.py` lists campaigns with their progress. Researchers' pages are in `pages/`, with a preview of HITs that
stores no answers, and JSON endpoints in `api/`. The items that a campaign asks about are uploaded through
`app.imports`.

Open `lifecycle.py` first: it creates and copies campaigns and moves them from state to state.
"""
