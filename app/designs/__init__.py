"""Designs: the ways of asking about items, their answers, and how answers are stored and shown.

Main types: `design.Design` (a way of asking, with a campaign's settings), `answer.Answer` (an annotator's answer to one
HIT), `content.Content` (how items are rendered), `unit.Unit` (the unit in which pages show values), and
`criteria.CampaignCriterion` (a campaign read by one of several questions). `registry` lists the designs by name. Open
`design.py` first, then a short design such as `slider.py`. To add a design, add a module with a class, a template in
`templates/designs` and one line in `registry.py`.
"""
