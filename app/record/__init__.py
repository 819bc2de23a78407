"""The record: a campaign's responses, in order, and the posteriors that follow from them.

Main types: `Response` (one answered HIT), `Revision` (one set of posteriors), `Watermark` (how far a reader has read),
`LawRunner` (applies an update law to stored state), `Verification` (compares stored posteriors with a replay).

Open `responses.py` first (how answers are read), then `bulk_update.py` (how they change posteriors), `revisions.py`
(how decisions change posteriors) with `due_revisions.py` (when they do), and `replay.py` (how posteriors are verified).
"""
