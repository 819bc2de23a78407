"""Designs: the ways of asking about items, their answers, and how answers are stored and shown.

Main types: `campaign.Campaign` (a campaign as it is stored), `criteria.Criterion` (one of the questions that it asks),
`design.Design` (a way of asking, with a campaign's settings), `answer.Answer` (an annotator's answer to one HIT),
`content.Content` (how items are rendered) and `unit.Unit` (the unit in which pages show values). `registry` lists the
designs by name. Open `design.py` first, then a short design such as `slider.py`. To add a design, add a module with a
class, a template in `templates/designs` and one line in `registry.py`.
"""
