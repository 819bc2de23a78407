"""A goal that is reached as soon as a few people have answered, who nearly agree."""

from typing import Any

from tests.serving.campaigns import annotator, hit_of, submit

GOAL: dict[str, Any] = {"goal": "best", "best_items": 2, "goal_within": 10, "judgments_per_item": 40}


async def answered(engine, campaign, people, scores_of=lambda item: [95.0, 90.0][item] if item < 2 else 10.0 + item):
    """HITs of so many people, who nearly agree: the first two items are the best."""
    for person in range(people):
        assignment = await annotator(engine, campaign, f"p{person}")
        for _ in range(2):
            hit = await hit_of(engine, assignment)
            noise = 3 * (person % 3 - 1)
            await submit(engine, assignment, hit, scores=[min(100.0, scores_of(i) + noise) for i in hit.items])
