"""Published judgments, imported: the figures of the papers come out of the tool."""

import csv
import io
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis.fit_cache import FitCache
from app.designs.campaign import Campaign
from app.inference.labels import dawid_skene
from app.inference.preferences import transitivity
from app.inference.systems import graded_response
from examples import published
from tests.annotation.hits.campaigns import fetch_rows, fetch_value
from tests.campaigns.drafts import create_launched_campaign, import_results, replay_is_clean

SCRIPT = Path(published.__file__)


async def imported(engine: AsyncEngine, campaign: published.Campaign) -> Campaign:
    """A campaign with these items and responses."""
    row = await create_launched_campaign(
        engine, published.as_csv(campaign.columns, campaign.items), **campaign.settings
    )
    done = await import_results(engine, row, published.as_csv(published.NEEDED, campaign.responses))
    hits = {(hit, annotator) for hit, annotator, *_ in campaign.responses}
    assert (done.responses, done.known) == (len(hits), 0)
    assert await replay_is_clean(engine, row.slug)
    return row


async def figures(engine: AsyncEngine, slug: str, table: str) -> list[dict[str, Any]]:
    found = await FitCache().load_cached_or_fit_table(engine, slug, table)
    return [dict(zip([column.name for column in found.columns], row, strict=True)) for row in found.rows]


async def test_annotators_of_arguments_are_as_transitive_as_their_pairs_say(engine):
    """Of two who judged many pairs. All 110 who judged whole triads: kappa .741 (`benchmarks.published`)."""
    judged = np.loadtxt(published.UKP / "judgments.csv.gz", dtype=np.int64, delimiter=",", skiprows=1, unpack=True)
    first, second, annotator, outcome = judged
    chosen = [59, 190]
    some = np.isin(annotator, chosen)
    expected = transitivity.fit(first[some], second[some], outcome[some], annotator[some])
    campaign = await imported(engine, published.arguments(chosen))
    rows = {row["measure"]: row for row in await figures(engine, campaign.slug, "consistency")}
    assert rows["transitivity"]["value"] == pytest.approx(expected.pooled_kappa)
    assert rows["transitivity"]["rests_on"] == expected.triads.sum() == 168


async def test_the_senses_of_a_word_are_as_prevalent_as_the_labels_say(engine):
    """Of some sentences with *add*. Of all, sense 1 has prevalence .509 (`benchmarks.published`)."""
    whole = published.senses()
    kept = {item for item, _ in whole.items[::25]}
    part = published.Campaign(
        whole.settings,
        whole.columns,
        [item for item in whole.items if item[0] in kept],
        [row for row in whole.responses if row[2] in kept],
    )
    campaign = await imported(engine, part)
    labels = whole.settings["design_settings"]["labels"]
    number = {item: k for k, (item, _) in enumerate(part.items)}
    annotators = {name: k for k, name in enumerate(sorted({row[1] for row in part.responses}))}
    given = [(number[row[2]], annotators[row[1]], labels.index(row[3])) for row in part.responses]
    expected = dawid_skene.fit(*np.array(given).T, start=0.7)
    found = await figures(engine, campaign.slug, "labels")
    assert [row["label"] for row in found] == labels
    assert [row["prevalence"] for row in found] == pytest.approx(expected.prevalence.tolist(), abs=1e-4)


async def test_the_labels_of_1979_are_as_likely_as_published(engine):
    campaign = await imported(engine, published.anesthesia())
    answers = await FitCache().load_answers(engine, campaign.slug)
    assert len(answers.annotators) == 5
    labels = np.asarray(answers.value, dtype=np.int64)
    result = dawid_skene.fit(answers.item, answers.annotator, labels, alpha=1.0, beta=1.0)
    assert result.log_likelihood == pytest.approx(-190.73, abs=0.005)


async def test_outputs_are_in_the_order_of_their_geometric_means(engine):
    """The law of ratios scores an item by the mean of their logarithms, drawn to the reference by the prior alone."""
    outputs = published.outputs()
    await imported(engine, outputs)
    means: dict[str, list[float]] = {}
    for _, _, item, score in outputs.responses:
        means.setdefault(item, []).append(float(np.log(float(score))))
    scores = dict(
        await fetch_rows(
            engine,
            "SELECT i.external_id, p.score FROM current_posteriors p JOIN items i USING (campaign_id, number)",
        )
    )
    three = [item for item, logs in means.items() if len(logs) == 3]
    assert len(three) == 300
    order = np.argsort([np.mean(means[item]) for item in three], kind="stable")
    assert np.all(np.diff([scores[three[k]] for k in order]) >= -1e-12)
    assert await fetch_value(engine, "SELECT count(*) FROM annotators") == len({row[1] for row in outputs.responses})


def chat_judgments(path: Path, models: int = 6, workers: int = 12) -> Path:
    """A file like llmfao.csv, which is no part of Easel: every model beside the baseline, on two prompts."""
    rng = np.random.default_rng(5)
    lines = ["id,prompt,model_x,model_y,worker,winner,left,right"]
    for count, (prompt, model, worker) in enumerate(itertools.product("78", range(models), range(workers))):
        sides = [f"Model {model}", published.BASELINE][:: rng.choice([1, -1])]
        won = ["left", "right"] if rng.random() < (model + 1) / (models + 1) else ["right", "left"]
        winner = "tie" if rng.random() < 0.2 else won[sides.index(f"Model {model}")]
        lines.append(f"{count},{prompt},0,1,{worker},{winner},{','.join(sides)}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("prompt", ["7", None])
async def test_systems_are_graded_against_their_baseline_as_their_judgments_say(engine, tmp_path, prompt):
    chats = published.chatbots(chat_judgments(tmp_path / "llmfao.csv"), prompt)
    campaign = await imported(engine, chats)
    assert campaign.design_name == ("baseline" if prompt else "pairwise")
    systems = [f"Model {k}" for k in range(6)]
    judged = [
        (systems.index(one[2][2:]), int(one[1]), "78".index(one[2][0]) if prompt is None else 0, other[3] - one[3])
        for pair in zip(chats.responses[::2], chats.responses[1::2], strict=True)
        for one, other in [sorted(pair, key=lambda row: published.BASELINE in row[2])]
    ]
    expected = graded_response.fit(*np.array(judged).T, n_items=6)
    found = {row["system"]: row["score"] for row in await figures(engine, campaign.slug, "graded_response")}
    assert found.pop(published.BASELINE) is None
    assert [found[name] for name in systems] == pytest.approx(expected.score.tolist(), abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", published.MADE)
def test_the_script_writes_what_the_commands_that_it_says_read(tmp_path, name):
    said = subprocess.run(
        [sys.executable, SCRIPT, name, tmp_path], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    assert [line.split()[1:3] for line in said.splitlines()][-1] == ["campaign", "import-responses"]
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert settings["design"]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "responses.csv").read_text())))
    items = list(csv.DictReader(io.StringIO((tmp_path / "items.csv").read_text())))
    assert {row["item"] for row in rows} <= {row["id"] for row in items}
    assert tuple(rows[0]) == published.NEEDED
