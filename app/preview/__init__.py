"""Preview: the campaign owner tries HITs as annotators will see them, also with settings that are not saved yet.

Open `pages.py` first: it renders annotators' templates for a `PreviewHit`, which `preview_hit.py` draws from the
campaign's items. Answers are checked like those of annotators, but not stored. The only stored fact is that a draft was
tried.
"""
