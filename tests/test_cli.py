"""The `easel` command, on a database named by DATABASE_URL; starting the server is in test_server.py."""

import asyncio
import csv
import io
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import NullPool, make_url, text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from app.campaigns.settings import CampaignSettings
from app.cli.commands import easel as command
from app.cli.import_files import import_progress_bar_by_bytes
from app.errors import StartupProblem
from app.server import serve
from app.server.addresses import server_url
from app.settings import Settings, easel_command_to_type
from tests.database.test_embedded import run_sql, wait_until
from tests.media.files import png, table, zipped
from tests.workbooks import workbook_bytes

ITEMS = "id,text\n" + "".join(f"v{k},verb {k}\n" for k in range(6))
BETTER = (
    "This campaign uses the rule “easl”. The selection rule “best” suits this goal. In tests on simulated "
    "and real data, it needed 3 to 7 judgments per item where asking evenly needed 10. The rule can’t be changed after "
    "launch; copy the campaign to use another one.\n"
)
RESULTS = "AssignmentId,WorkerId,Input.id1,Input.id2,Answer.range1,Answer.range2\nA1,W1,v0,v1,70,30\n"


@pytest.fixture
def easel(database_url, monkeypatch):
    """Run a command; what it refuses must be one line on stderr and exit code 1."""
    monkeypatch.setenv("DATABASE_URL", database_url)

    def run(*arguments: object, typed: str | None = None) -> Result:
        result = CliRunner().invoke(command, [str(argument) for argument in arguments], input=typed)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        if result.exit_code == 1:
            assert result.stderr.startswith(("easel: ", "Aborted!"))
            assert result.stderr.count("\n") == 1
        return result

    return run


@pytest.fixture
def files(tmp_path):
    (tmp_path / "items.csv").write_text(ITEMS)
    (tmp_path / "results.csv").write_text(RESULTS)
    return tmp_path


@pytest.fixture
def running(easel, files):
    """Create a launched campaign `verbs` with six items."""
    chosen = ("--name", "Verbs", "--question", "How often?", "--best-items", 2)
    assert easel("campaign", "create", *chosen).output == "verbs\n"
    easel("campaign", "import", "verbs", files / "items.csv")
    easel("campaign", "launch", "verbs")
    return "verbs"


def test_a_campaign_is_created_by_its_question_alone(easel):
    assert easel("campaign", "create", "--question", "How often?").output == "how-often\n"
    assert "name: How often?\n" in easel("campaign", "show", "how-often").output


def test_a_campaign_goes_from_a_file_to_an_export_and_is_verified(easel, files):
    assert easel("campaign", "create", "--name", "Verbs", "--question", "How often?").output == "verbs\n"
    told = easel("campaign", "import", "verbs", files / "items.csv").output.splitlines()
    assert told[0] == "Imported 6 items. The file has 6 rows in 7 lines."
    launched = easel("campaign", "launch", "verbs").output
    assert launched.startswith("verbs is running.\nAnnotators: http://127.0.0.1:8000/link/")
    imported = easel("campaign", "import-responses", "verbs", files / "results.csv").output
    assert imported == "Imported 1 response on 2 items.\nThe file has 1 row on 2 lines.\n"
    assert easel("verify", "verbs").output == "Replayed 1 responses: the posteriors of 6 items are the same.\n"
    table = list(csv.DictReader(io.StringIO(easel("export", "verbs", "items").output)))
    assert [(row["id"], row["alpha"], row["judgments"]) for row in table[:3]] == [
        ("v0", "1.7", "1"),
        ("v1", "1.3", "1"),
        ("v2", "1.0", "0"),
    ]
    for action, status in (("pause", "paused"), ("resume", "running"), ("finish", "finished")):
        assert easel("campaign", action, "verbs").output == f"verbs is {status}.\n"


def test_items_are_retired_restored_and_corrected(easel, running, tmp_path):
    items = ("campaign", "items")
    assert easel(*items, "retire", running, "v1", "v2", "v1").output == "Retired 2 items of verbs.\n"
    again = easel(*items, "retire", running, "v2", "v3").output
    assert again == "Retired 1 item of verbs.\n1 item needed no change.\n"
    assert easel(*items, "restore", running, "v1", "v2", "v3").output == "Restored 3 items of verbs.\n"
    corrected = easel(*items, "correct", running, "v1", "to run").output
    assert corrected == "Corrected v1 of verbs. This is version 2 of its text.\n"
    (tmp_path / "text.txt").write_text("to walk\nslowly\n")
    corrected = easel(*items, "correct", running, "v1", "--file", tmp_path / "text.txt").output
    assert corrected == "Corrected v1 of verbs. This is version 3 of its text.\n"
    table = csv.DictReader(io.StringIO(easel("export", running, "items").output))
    assert [row["shown"] for row in table if row["id"] == "v1"] == ["to walk\nslowly"]


def test_known_answers_become_gold_items(easel, tmp_path):
    easel("campaign", "create", "--name", "Known", "--question", "How good?")
    table = tmp_path / "items.csv"
    table.write_text("id,text,truth\n" + "".join(f"t{k},text {k},{k * 10}\n" for k in range(11)))
    easel("campaign", "import", "known", table)
    made = easel("campaign", "items", "gold", "known", "--count", "2", "--tolerance", "5").output
    assert made == "Made 2 gold items of known: t0, t10.\n"


def test_gold_outputs_join_the_outputs_of_systems(easel, tmp_path):
    easel("campaign", "create", "--name", "Known", "--question", "How good?", "--items-per-hit", "3")
    (tmp_path / "outputs.csv").write_text("system,segment,output\nape,s1,one\nbee,s1,two\n")
    easel("campaign", "import", "known", tmp_path / "outputs.csv")
    (tmp_path / "checks.csv").write_text("system,segment,output,check,expected\nbad,s1,broken,gold,0\n")
    assert easel("campaign", "import", "known", tmp_path / "checks.csv").output.startswith("Imported 1 gold item.\n")
    (tmp_path / "checks.csv").write_text("system,segment,output,check,expected\nbad,s2,broken,gold,0\n")
    refused = easel("campaign", "import", "known", tmp_path / "checks.csv")
    assert refused.exit_code == 1
    assert "(segment_unknown)" in refused.stderr
    assert "(not_for_systems)" in easel("campaign", "items", "gold", "known", "--count", "2").stderr


def test_changes_of_items_are_refused_with_the_reason(easel, running):
    items = ("campaign", "items")
    for arguments, code in (
        (("retire", running, "v1", "v99"), "item_not_found"),
        (("retire", "nouns", "v1"), "campaign_not_found"),
        (("delete", "--yes", running, "v1"), "not_a_draft"),
        (("correct", running, "v1", " "), "shown_empty"),
    ):
        refused = easel(*items, *arguments)
        assert refused.exit_code == 1
        assert f"({code})" in refused.stderr
    assert easel(*items, "correct", running, "v1").exit_code == 2
    assert easel(*items, "retire", running).exit_code == 2
    assert easel(*items, "delete", running, "v1", typed="n\n").exit_code == 1


def test_items_of_a_draft_are_deleted(easel, files):
    easel("campaign", "create", "--name", "Verbs", "--question", "How often?")
    easel("campaign", "import", "verbs", files / "items.csv")
    assert easel("campaign", "items", "delete", "verbs", "v1", "--yes").output == "Deleted 1 item of verbs.\n"
    assert "(not_launched)" in easel("campaign", "items", "retire", "verbs", "v2").stderr


def test_every_setting_is_an_option_with_its_description(easel):
    text = " ".join(easel("campaign", "create", "--help").output.split())
    for name, field in CampaignSettings.model_fields.items():
        assert f"--{name.replace('_', '-')}" in text
        assert " ".join((field.description or "").split()).replace("- ", "") in text.replace("- ", "")


def test_options_become_settings(easel):
    easel(
        *("campaign", "create", "--name", "Other", "--question", "Q?", "--items-per-hit", "3"),
        *("--no-show-numbers", "--update-law", "trueskill", "--gamma", "0.25", "--hits-per-annotator", "7"),
        *("--prior", "0.25, 2"),
    )
    settings = json.loads(easel("campaign", "show", "other", "--json").output)["settings"]
    assert (settings["items_per_hit"], settings["show_numbers"], settings["gamma"]) == (3, False, 0.25)
    assert (settings["update_law"], settings["prior"], settings["hits_per_annotator"]) == ("trueskill", [0.25, 2], 7)


def test_a_rule_that_suits_the_goal_is_named_where_another_one_is_chosen(easel):
    named = easel("campaign", "create", "--name", "A", "--question", "Q?", "--goal", "threshold")
    assert (named.stdout, "“threshold” suits this goal" in named.stderr) == ("a\n", True)
    assert "suits" in easel("campaign", "edit", "a", "--rule", "best").output
    assert "suits" not in easel("campaign", "edit", "a", "--rule", "threshold").output


def test_edit_changes_what_is_named_and_an_empty_option_clears(easel):
    easel("campaign", "create", "--name", "A", "--question", "Q?", "--middle-label", "so-so", "--seed", "5")
    easel("campaign", "edit", "a", "--middle-label", "", "--update-law", "trueskill")
    settings = json.loads(easel("campaign", "show", "a", "--json").output)["settings"]
    assert (settings["middle_label"], settings["seed"], settings["prior"]) == (None, 5, None)


def test_settings_come_from_a_file_and_from_an_export_of_another_campaign(easel, running, tmp_path):
    (tmp_path / "plain.json").write_text('{"name": "Plain", "question": "Q?", "gamma": 0.3}')
    easel("campaign", "create", "--settings", tmp_path / "plain.json", "--gamma", "0.4")
    assert json.loads(easel("campaign", "show", "plain", "--json").output)["settings"]["gamma"] == 0.4
    easel("export", running, "settings", "-o", tmp_path / "export.json")
    again = easel("campaign", "create", "--settings", tmp_path / "export.json").output.strip()
    shown = [json.loads(easel("campaign", "show", slug, "--json").output) for slug in (running, again)]
    assert again == "verbs-2"
    assert shown[0]["settings"] == shown[1]["settings"]


def test_campaigns_are_listed_newest_first(easel, running):
    easel("campaign", "create", "--name", "Newer", "--question", "Q?")
    assert easel("campaign", "list").output.splitlines() == [
        "Campaign  Status   Items  Judgments  of",
        "newer     draft        0          0   0",
        "verbs     running      6          0  60",
    ]
    listed = json.loads(easel("campaign", "list", "--json").output)
    assert [(one["slug"], one["judgments_wanted"]) for one in listed] == [("newer", 0), ("verbs", 60)]


def test_archived_campaigns_are_listed_apart(easel, running):
    easel("campaign", "pause", running)
    assert easel("campaign", "archive", running).output == f"{running} is archived.\n"
    assert running not in easel("campaign", "list").output
    assert running in easel("campaign", "list", "--archived").output
    assert easel("campaign", "restore", running).output == f"{running} is paused.\n"
    assert easel("campaign", "list", "--archived").output == "No campaign is archived.\n"


def test_show_with_all_tells_state_settings_and_links(easel, running, monkeypatch):
    monkeypatch.setenv("EASEL_PUBLIC_URL", "https://easel.example")
    text = easel("campaign", "show", running, "--all").output
    assert "status: running\n" in text
    assert "middle label: -\n" in text
    assert "show numbers: no\n" in text or "show numbers: yes\n" in text
    assert re.search(r"^link: https://easel\.example/link/\S+$", text, re.MULTILINE)
    assert re.search(r"^prolific: https://easel\.example/prolific/\S+$", text, re.MULTILINE)
    assert re.search(r"^created at: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00:00$", text, re.MULTILINE)
    names = [line.partition(":")[0] for line in text.splitlines()]
    assert len(names) == len(set(names))


def test_show_indents_the_further_lines_of_a_text(easel):
    easel("campaign", "create", "--name", "A", "--question", "Q?", "--instructions", "First.\n\nstatus: second")
    text = easel("campaign", "show", "a", "--all").output
    assert "instructions: First.\n  \n  status: second\n" in text


def test_a_template_and_replace_are_passed_on(easel, files):
    easel("campaign", "create", "--name", "Verbs", "--question", "Q?")
    easel("campaign", "import", "verbs", files / "items.csv")
    easel("campaign", "import", "verbs", files / "items.csv", "--replace", "--template", "to {text}")
    easel("campaign", "launch", "verbs")
    assert "v0,to verb 0,verb 0," in easel("export", "verbs", "items").output


def test_columns_of_the_table_of_a_template_are_named_where_they_are_not_clear(easel, tmp_path):
    table = tmp_path / "words.csv"
    table.write_text("verb,lemma,rank\ngo,to go,1\nrun,to run,2\nsit,to sit,3\nsee,to see,4\n")
    create = ("campaign", "create", "--template", "lexical-frequency", "--items", table)
    refused = easel(*create)
    assert (refused.exit_code, "column_unknown" in refused.output) == (1, True)
    slug = easel(*create, "--id", "rank", "--shown", "lemma").output.strip()
    easel("campaign", "launch", slug)
    assert easel("export", slug, "items").output.splitlines()[1].startswith("1,to go,")
    assert easel("campaign", "create", "--template", "lexical-frequency", "--id", "rank").exit_code == 2


def test_lines_of_a_txt_file_are_items_and_other_lines_with_an_option(easel, tmp_path):
    easel("campaign", "create", "--name", "Verbs", "--question", "Q?")
    for name, options in (("a.txt", ()), ("a.csv", ("--replace", "--read-as", "lines"))):
        (tmp_path / name).write_text("Send it.\nPlease, send it\n")
        told = easel("campaign", "import", "verbs", tmp_path / name, *options).output
        assert told.startswith("Imported 2 items. The file has 2 rows in 2 lines.\nEvery line is one text."), name


def test_a_sheet_of_a_workbook_is_imported(easel, tmp_path):
    easel("campaign", "create", "--name", "Verbs", "--question", "Q?")
    workbook = tmp_path / "items.xlsx"
    workbook.write_bytes(workbook_bytes({"Train": [["id", "text"], [1, "a"]], "Test": [["id", "text"], [2, "b"]]}))
    told = easel("campaign", "import", "verbs", workbook, "--sheet", "Test").output
    assert told.startswith("Imported 1 item. The file has 1 row in 2 lines.\nSheet “Test” was read, one of 2.\n")


def test_a_bar_shows_progress_on_a_terminal_only(files, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stderr, drawn in ((io.StringIO(), False), (Terminal(), True)):
        monkeypatch.setattr(sys, "stderr", stderr)
        with (files / "items.csv").open("rb") as file, import_progress_bar_by_bytes(file) as progress:
            file.readline()
            progress(1)
            file.read()
            progress(6)
        assert ("Importing" in stderr.getvalue()) == drawn
        assert ("100%" in stderr.getvalue()) == drawn


def test_an_export_of_responses_becomes_those_of_another_campaign(easel, files):
    for name in ("Verbs", "Copy"):
        easel("campaign", "create", "--name", name, "--question", "Q?")
        easel("campaign", "import", name.lower(), files / "items.csv")
        easel("campaign", "launch", name.lower())
    (files / "rows.csv").write_text("hit,annotator,item,value\nh,Ann,v0,70\nh,Ann,v1,30\n")
    easel("campaign", "import-responses", "verbs", files / "rows.csv")
    (files / "export.csv").write_text(easel("export", "verbs", "responses").output)
    output = easel("campaign", "import-responses", "copy", files / "export.csv").output
    assert output == "Imported 1 response on 2 items.\nThe file has 2 rows on 3 lines.\n"
    assert easel("export", "copy", "items").output == easel("export", "verbs", "items").output
    again = easel("campaign", "import-responses", "verbs", files / "export.csv")
    assert again.exit_code == 1
    assert "assignment_known" in again.stderr


def test_answers_of_another_tool_are_imported_by_the_columns_that_are_named(easel, files):
    easel("campaign", "create", "--name", "Verbs", "--question", "Q?")
    easel("campaign", "import", "verbs", files / "items.csv")
    easel("campaign", "launch", "verbs")
    (files / "batch.csv").write_text("WorkerId,Input.verb,Answer.score,When\nW1,v0,70,1/2/2026 3:04 PM\n")
    refused = easel("campaign", "import-responses", "verbs", files / "batch.csv")
    assert "(result_columns)" in refused.stderr
    assert "item_column=Input.verb, value_column=Answer.score" in refused.stderr
    named = ("--item-column", "Input.verb", "--value-column", "Answer.score", "--submitted-at-column", "When")
    unclear = easel("campaign", "import-responses", "verbs", files / "batch.csv", *named)
    assert "(date_order_unclear)" in unclear.stderr
    done = easel("campaign", "import-responses", "verbs", files / "batch.csv", *named, "--date-order", "day_first")
    assert "Imported 1 response on 1 item." in done.output
    assert "Dates were read with the day first." in done.output
    assert "Times without a time zone were read as UTC." in done.output


def test_images_come_as_a_zip_beside_the_items(easel, tmp_path):
    photos = {"a.png": png(), "b.png": png()}
    (tmp_path / "photos.csv").write_text(table(*photos))
    (tmp_path / "photos.zip").write_bytes(zipped(photos))
    easel("campaign", "create", "--name", "Photos", "--question", "How sharp?", "--content", "image")
    without = easel("campaign", "import", "photos", tmp_path / "photos.csv")
    assert "(media_missing)" in without.stderr
    done = easel("campaign", "import", "photos", tmp_path / "photos.csv", "--media", tmp_path / "photos.zip")
    assert done.output.startswith("Imported 2 items. The file has 2 rows in 3 lines.\n")


def test_a_table_is_read_and_its_columns_are_taken_as_the_command_says(easel, tmp_path):
    easel("campaign", "create", "--name", "Verbs", "--question", "Q?")
    (tmp_path / "a.csv").write_bytes("satz,alpha,beta\nGrüße aus Köln.,2,3\nSchön.,4,5\n".encode("cp1252"))
    without = easel("campaign", "import", "verbs", tmp_path / "a.csv")
    assert "It looks like Windows-1252: “Grüße aus Köln.”" in without.stderr
    read = ("campaign", "import", "verbs", tmp_path / "a.csv", "--encoding", "windows-1252")
    assert "--id ':row numbers:'" in easel(*read).stderr
    done = easel(*read, "--id", ":row numbers:", "--shown", "satz").output
    assert done.startswith("Imported 2 items. The file has 2 rows in 3 lines.\nRead as Windows-1252.\n")
    assert "“alpha” and “beta” could be the prior" in done
    easel(*read, "--id", ":row numbers:", "--shown", "satz", "--priors", "--replace")
    (tmp_path / "b.tsv").write_text("id\ttext\n" + "".join(f"{k}\t“{k}”\n" for k in range(8)))
    easel("campaign", "import", "verbs", tmp_path / "b.tsv", "--quotes", "text")
    assert "2 items start with their own priors" in easel("campaign", "launch", "verbs").output


def test_an_import_says_when_there_are_more_judgments_than_wanted(easel, files, monkeypatch):
    easel("campaign", "create", "--name", "Verbs", "--question", "Q?", "--judgments-per-item", "1")
    (files / "two.csv").write_text("id,text\nv0,a\nv1,b\n")
    easel("campaign", "import", "verbs", files / "two.csv")
    easel("campaign", "launch", "verbs")
    (files / "results.csv").write_text(RESULTS + "A2,W2,v0,v1,1,2\n")
    output = easel("campaign", "import-responses", "verbs", files / "results.csv").output
    assert "2 items now have more judgments than you wanted" in output
    assert "the campaign is finished" in output


def test_simulated_annotators_rehearse_a_campaign(easel, running):
    said = easel("simulate", running, "--hits", 3, "--annotators", 2, "--pace", 0).output
    assert said == "Simulated annotators answered 3 HITs of verbs.\n"
    rows = list(csv.DictReader(io.StringIO(easel("export", running, "responses").output)))
    assert {row["source"] for row in rows} == {"simulation"}
    assert easel("verify", running).exit_code == 0


def test_simulated_annotators_answer_as_real_ones_did(easel, running):
    chosen = ("--like", "mlqe-ro-en", "--careless", 0.5, "--careless-how", "middle")
    easel("simulate", running, "--hits", 8, "--annotators", 2, "--pace", 0, *chosen)
    rows = list(csv.DictReader(io.StringIO(easel("export", running, "responses").output)))
    about_the_middle: dict[str, bool] = {}
    for row in rows:
        about_the_middle.setdefault(row["annotator"], True)
        about_the_middle[row["annotator"]] &= 40 < float(row["score"]) < 60
    assert sorted(about_the_middle.values()) == [False, True]
    assert easel("simulate", running, "--like", "nobody").exit_code == 2


def test_a_platform_that_loses_its_link_is_named(easel, running):
    chosen = ("--panel-title", "SONA", "--panel-query", "id=%SURVEY_CODE%")
    assert easel("campaign", "edit", running, *chosen).output == f"Saved the settings of {running}.\n"
    lost = easel("campaign", "edit", running, "--panel-query", "")
    assert lost.exit_code == 0
    assert "People from SONA find no task at their link" in lost.output


def test_what_a_goal_will_cost_is_said(easel, running):
    refused = easel("plan", running)
    assert (refused.exit_code, "nothing to plan" in refused.output) == (1, True)
    easel("campaign", "edit", running, "--goal", "intervals", "--goal-width", 25)
    goal, needed, supposed = easel("plan", running, "--runs", 2).output.splitlines()
    assert easel("campaign", "edit", running, "--goal", "best", "--goal-within", 40).output.endswith(BETTER)
    assert easel("plan", running, "--runs", 2).output.endswith(BETTER)
    assert goal == "Goal: 95 % of items have intervals of ±25 points or less."
    assert needed.startswith("About ")
    assert "task" in needed
    assert supposed.startswith("Assumes 200 annotators;")
    assert "Planned for 30 annotators." in easel("plan", running, "--runs", 2, "--annotators", 30).output
    assert easel("plan", running, "--annotators", 0).exit_code == 2
    assert easel("plan", running, "--like", "nobody").exit_code == 1


def test_ctrl_c_ends_a_plan_after_the_campaign_that_is_simulated(easel, running, monkeypatch):
    simulated = []

    async def interrupted(_engine, _slug, *, on_run, **_asked):
        signal.raise_signal(signal.SIGINT)
        for far in range(1, 4):
            on_run(far)
            simulated.append(far)

    monkeypatch.setattr("app.planning.forecast.forecast_cost_of_goal_or_refuse", interrupted)
    assert easel("plan", running).exit_code == 130
    assert simulated == []


def test_simulated_annotators_stop_when_nothing_is_left(easel, running):
    easel("simulate", running, "--hits", 1000, "--pace", 0)
    (campaign,) = json.loads(easel("campaign", "list", "--json").output)
    assert campaign["status"] == "finished"
    assert campaign["judgments_taken"] == campaign["judgments_wanted"]


def test_simulated_annotators_stop_when_the_goal_is_reached(easel, running):
    easel("campaign", "edit", running, "--goal", "intervals", "--goal-width", 50, "--when-reached", "pause")
    easel("simulate", running, "--hits", 8, "--pace", 0)
    (campaign,) = json.loads(easel("campaign", "list", "--json").output)
    assert campaign["status"] == "paused"


def test_a_launch_asks_first_where_somebody_can_answer(easel, files, monkeypatch):
    goal = ("--goal", "best", "--rule", "best", "--best-items", 3)
    easel("campaign", "create", "--name", "Verbs", "--question", "Q?", "--checks-percent", 10, *goal)
    easel("campaign", "import", "verbs", files / "items.csv")
    monkeypatch.setattr("app.cli.campaigns.is_at_terminal", lambda: True)
    asked = easel("campaign", "launch", "verbs", typed="n\n")
    assert asked.exit_code == 1
    assert "Can’t be changed later: the uploaded items" in asked.output
    assert "the selection rule (best), the number of best items (3), and how" in asked.output
    assert (
        "you get an alert and the campaign continues. The campaign ends at the latest once each item has"
        in asked.output
    )
    assert "verbs is running." not in asked.output
    launched = easel("campaign", "launch", "verbs", "--yes").output
    assert launched.startswith("verbs is running.")
    assert (
        "10 % of HITs should show a check, but the campaign has no checks. Import items that include checks."
        in launched
    )


def test_delete_asks_first(easel):
    easel("campaign", "create", "--name", "Verbs", "--question", "Q?")
    assert easel("campaign", "delete", "verbs", typed="n\n").exit_code == 1
    assert "verbs" in easel("campaign", "list").output
    assert easel("campaign", "delete", "verbs", typed="y\n").output.endswith("Deleted verbs.\n")
    assert easel("campaign", "list").output.startswith("There are no campaigns yet.")


def test_what_cannot_be_deleted_is_refused_without_a_question(easel, running):
    refused = easel("campaign", "delete", "verbs", typed="y\n")
    assert refused.stdout == ""
    assert "(not_a_draft)" in refused.stderr


def test_login_prints_a_link_that_works_once(easel, database_url):
    link = easel("login", "--url", "https://easel.example/").output.strip()
    assert link.startswith("https://easel.example/login?token=")
    usual = easel("login")
    assert usual.output.startswith("http://127.0.0.1:8000/login?token=")
    assert usual.stderr == ""  # a server on a database that is named may run anywhere
    assert run_sql(database_url, "SELECT count(*) FROM one_time_logins") == 2


def test_verify_names_what_differs_and_fails(easel, running, files, database_url):
    easel("campaign", "import-responses", running, files / "results.csv")
    run_sql(database_url, "UPDATE posteriors SET state[1] = 1.75 WHERE subject = 0")
    result = easel("verify", running)
    assert result.exit_code == 1
    assert result.stdout == "item v0: alpha is 1.75, replayed 1.7\n"
    assert result.stderr == "easel: 1 stored numbers differ from the replay. (verify_failed)\n"
    document = json.loads(easel("verify", running, "--json").stdout)
    assert (document["clean"], document["mismatches"][0]["stored"]) == (False, 1.75)


def test_settings_are_exported_as_json_and_a_refusal_of_another_format_says_so(easel, running):
    settings = easel("export", running, "settings").output
    assert easel("export", running, "settings", "--format", "json").output == settings
    for what, format_ in (("settings", "csv"), ("settings", "jsonl"), ("items", "json")):
        refused = easel("export", running, what, "--format", format_)
        assert refused.exit_code == 2
        assert "--format json" in refused.stderr


def test_an_export_goes_to_a_file_whole_or_not_at_all(easel, running, tmp_path):
    output = tmp_path / "items.jsonl"
    easel("export", running, "items", "--format", "jsonl", "-o", output)
    assert [json.loads(line)["id"] for line in output.read_text().splitlines()] == [f"v{k}" for k in range(6)]
    result = easel("export", running, "items", "-o", tmp_path / "none" / "items.csv")
    assert (result.exit_code, "(file_not_written)" in result.stderr) == (1, True)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("items.j")] == ["items.jsonl"]


def test_the_bytes_printed_are_the_bytes_written(easel, running, tmp_path):
    easel("export", running, "items", "--spreadsheet", "-o", tmp_path / "a.csv")
    assert easel("export", running, "items", "--spreadsheet").stdout_bytes == (tmp_path / "a.csv").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("campaign", "show", "none"), "campaign_not_found"),
        (("campaign", "launch", "none"), "campaign_not_found"),
        (("verify", "none"), "campaign_not_found"),
        (("export", "none", "items"), "campaign_not_found"),
        (("campaign", "create", "--name", "A"), "settings_invalid"),
        (("campaign", "create", "--name", "A", "--question", "Q?", "--gamma", "much"), "settings_invalid"),
        (("campaign", "create", "--name", "A", "--question", "Q?", "--items-per-hit", "11"), "settings_invalid"),
        (("campaign", "create", "--settings", "pyproject.toml"), "settings_unreadable"),
        (("campaign", "create", "--settings", "LIST"), "settings_unreadable"),
    ],
)
def test_what_is_refused_is_one_line_with_its_code(easel, tmp_path, arguments, code):
    (tmp_path / "list.json").write_text("[]")
    result = easel(*(str(tmp_path / "list.json") if argument == "LIST" else argument for argument in arguments))
    assert result.exit_code == 1
    assert result.stderr.endswith(f"({code})\n")


def test_a_wrong_setting_is_named_by_its_option(easel):
    result = easel("campaign", "create", "--name", "A", "--question", "Q?", "--items-per-hit", "five")
    assert "--items-per-hit: Enter a whole number." in result.stderr


def test_a_wrong_line_of_a_file_is_named(easel, files):
    easel("campaign", "create", "--name", "Verbs", "--question", "Q?")
    (files / "items.csv").write_text(ITEMS + "v0,again\n")
    result = easel("campaign", "import", "verbs", files / "items.csv")
    assert result.stderr == (
        "easel: Line 8: the id “v0” already appeared on line 2. Nothing was imported. (id_twice)\n"
    )


def test_what_nobody_expected_keeps_its_traceback(easel, monkeypatch):
    def crash(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("app.database.server_database.open_command_database_and_yield_url", crash)
    with pytest.raises(ZeroDivisionError):
        easel("campaign", "list")


def test_a_variable_that_is_wrong_is_one_line(easel, monkeypatch):
    monkeypatch.setenv("EASEL_PORT", "many")
    result = easel("campaign", "list")
    assert result.exit_code == 1
    assert "EASEL_PORT" in result.stderr


def test_a_database_that_does_not_answer_is_one_line_without_the_password(easel, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://someone:hunter2@127.0.0.1:9/none")
    result = easel("campaign", "list")
    assert result.exit_code == 1
    assert result.stderr.endswith("Check DATABASE_URL. (startup_problem)\n")
    assert "127.0.0.1:9/none does not answer" in result.stderr
    assert "hunter2" not in result.stderr


def test_a_database_that_does_not_exist_is_one_line(easel, database_url, monkeypatch):
    absent = make_url(database_url).set(database="nowhere").render_as_string(hide_password=False)
    monkeypatch.setenv("DATABASE_URL", absent)
    said = easel("campaign", "list").stderr
    assert said.endswith('does not answer: database "nowhere" does not exist. Check DATABASE_URL. (startup_problem)\n')


@pytest.mark.own_database
def test_a_database_without_tables_asks_for_migrate(easel, database_url):
    run_sql(database_url, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    assert f"Run `{easel_command_to_type()} migrate` first" in easel("campaign", "list").stderr
    assert easel("migrate").output == "The database schema is up to date.\n"
    assert easel("campaign", "list").output.startswith("There are no campaigns yet.")


@pytest.mark.own_database
def test_a_user_needs_no_more_than_rights_on_the_tables(easel, database_url, monkeypatch):
    url = make_url(database_url)
    guest = f"guest_of_{url.database}"
    run_sql(database_url, f"REVOKE TEMPORARY ON DATABASE {url.database} FROM PUBLIC", f"CREATE ROLE {guest} LOGIN")
    run_sql(database_url, f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {guest}")
    monkeypatch.setenv("DATABASE_URL", url.set(username=guest).render_as_string(hide_password=False))
    said = easel("campaign", "list").output
    run_sql(database_url, f"DROP OWNED BY {guest}", f"DROP ROLE {guest}")
    assert said.startswith("There are no campaigns yet.")


# Ctrl-C

STARTED_IN_FRONT = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "  # a shell may ignore it
INTERRUPTED_WHERE_IT_IMPORTS = """
import os, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from app.cli import main
main(["campaign", "list"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("module", ["click", "pydantic", "sqlalchemy.ext.asyncio", "app.campaigns.summaries"])
def test_ctrl_c_while_python_imports_is_one_line(module):
    program = STARTED_IN_FRONT + INTERRUPTED_WHERE_IT_IMPORTS
    arguments = [sys.executable, "-c", program, module]
    done = subprocess.run(arguments, check=False, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "easel: Stopped.\n")


WAITING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND application_name = 'easel' AND datname = current_database()
"""

END_WAITING = WAITING.replace("count(*)", "pg_terminate_backend(pid)")


@contextmanager
def holding(url: str, lock: str) -> Iterator[None]:
    """Hold the lock of a statement during the block."""
    engine = create_async_engine(url, poolclass=NullPool)

    async def take() -> AsyncConnection:
        connection = await engine.connect()
        await connection.execute(text(lock))
        return connection

    with asyncio.Runner() as runner:
        connection = runner.run(take())
        try:
            yield
        finally:
            runner.run(connection.close())
            runner.run(engine.dispose())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "safe"),
    [
        (("import", "items.csv"), "Nothing was changed."),
        (("import-responses", "results.csv"), "If answers were stored, the server or the next import stores the rest."),
    ],
)
def test_ctrl_c_in_an_import_is_one_line_that_says_what_is_safe(easel, files, database_url, what, safe):
    kind, file = what
    easel("campaign", "create", "--name", "Verbs", "--question", "How often?")
    if kind == "import-responses":
        easel("campaign", "import", "verbs", files / "items.csv")
        easel("campaign", "launch", "verbs")
    before = easel("campaign", "list").output
    program = STARTED_IN_FRONT + "from app.cli import main; main()"
    with holding(database_url, "LOCK TABLE campaigns IN ACCESS EXCLUSIVE MODE"):
        arguments = [sys.executable, "-c", program, "campaign", kind, "verbs", str(files / file)]
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: run_sql(database_url, WAITING) == 1)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)
    assert (process.returncode, *said) == (130, "", f"easel: Stopped. {safe}\n")
    assert easel("campaign", "list").output == before


@pytest.mark.slow
def test_a_database_that_goes_away_in_a_command_is_one_line(easel, files, database_url):
    easel("campaign", "create", "--name", "Verbs", "--question", "How often?")
    before = easel("campaign", "list").output
    with holding(database_url, "LOCK TABLE campaigns IN ACCESS EXCLUSIVE MODE"):
        arguments = [sys.executable, "-m", "app.cli", "campaign", "import", "verbs", str(files / "items.csv")]
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: run_sql(database_url, WAITING) == 1)
        run_sql(database_url, END_WAITING)
        said = process.communicate(timeout=60)
    assert (process.returncode, said[0], said[1].count("\n")) == (1, "", 1), said
    assert said[1].endswith("(database_unavailable)\n")
    assert easel("campaign", "list").output == before


@pytest.mark.parametrize(
    ("host", "public_url", "expected"),
    [
        ("127.0.0.1", None, "http://127.0.0.1:80"),
        ("0.0.0.0", None, "http://127.0.0.1:80"),
        ("::", None, "http://[::1]:80"),
        ("0.0.0.0", "https://easel.example", "https://easel.example"),
    ],
)
def test_the_address_is_one_that_a_browser_can_open(host, public_url, expected):
    assert server_url(Settings(host=host, public_url=public_url), 80) == expected


def test_a_host_that_is_not_ours_is_named():
    with pytest.raises(StartupProblem, match="EASEL_HOST"), serve.open_one_socket_per_worker("192.0.2.1", 0, 1):
        pass
    with pytest.raises(StartupProblem, match="EASEL_HOST"), serve.open_one_socket_per_worker("no such host", 0, 1):
        pass


def test_a_port_that_needs_more_rights_is_said():
    problem = serve.startup_problem_of_listening("127.0.0.1", 80, PermissionError(13, "Permission denied"))
    assert "from 1024 on" in str(problem)


def test_the_command_lives_where_the_package_says():
    assert 'easel = "app.cli:main"' in Path("pyproject.toml").read_text()


def settings_of(easel, slug):
    return json.loads(easel("campaign", "show", slug, "--json").output)["settings"]


def test_a_campaign_is_one_file_with_a_table_beside_it(easel, files):
    (files / "c.yaml").write_text("name: Filed\nquestion: How often?\nseed: 7\nitems: {file: items.csv}\n")
    assert easel("campaign", "create", files / "c.yaml", "--gamma", "0.4").output == "filed\n"
    assert easel("campaign", "file", "filed", "--items", "-o", files / "again.yaml").exit_code == 0
    assert easel("campaign", "create", files / "again.yaml").output == "filed-2\n"
    assert settings_of(easel, "filed-2") == settings_of(easel, "filed")
    assert (settings_of(easel, "filed")["seed"], settings_of(easel, "filed")["gamma"]) == (7, 0.4)
    assert easel("campaign", "file", "filed-2", "--items").output == (files / "again.yaml").read_text()


def test_a_table_from_elsewhere_is_taken_when_it_is_asked_for(easel, files):
    folder = files / "below"
    folder.mkdir()
    (folder / "c.yaml").write_text("name: Filed\nquestion: How often?\nitems: {file: ../items.csv}\n")
    assert "(items_outside)" in easel("campaign", "create", folder / "c.yaml").stderr
    assert easel("campaign", "create", folder / "c.yaml", "--items", files / "items.csv").output == "filed\n"


def test_a_campaign_file_with_mistakes_creates_nothing(easel, files):
    (files / "c.yaml").write_text("name: Filed\nquesion: How often?\nitems: {file: items.csv}\n")
    refused = easel("campaign", "create", files / "c.yaml", "--items-per-hit", "x").stderr
    assert refused.startswith("easel: c.yaml has 3 mistakes; nothing was created. ")
    for words in ("Line 1, question: ", "Line 2, quesion: ", "--items-per-hit: Enter a whole number."):
        assert words in refused
    assert "(campaign_file_invalid)" in refused
    assert "no campaigns yet" in easel("campaign", "list").output


def test_a_campaign_begins_with_a_template(easel, files):
    assert "word-senses" in easel("campaign", "templates").output
    assert json.loads(easel("campaign", "templates", "--json").output)[0]["name"] == "lexical-frequency"
    assert easel("campaign", "create", "--template", "sentiment", "--name", "Mine").output == "mine\n"
    assert settings_of(easel, "mine")["design"] == "ordinal"
    assert easel("campaign", "create", "--template", "sentiment", files / "items.csv").exit_code == 2
    assert easel("campaign", "create", "--items", files / "items.csv").exit_code == 2


def test_criteria_are_given_as_json(easel):
    asked = [{"name": "adequacy", "question": "What?"}, {"name": "fluency", "question": "How?"}]
    made = easel(
        "campaign", "create", "--name", "Two", "--question", "How good?", "--criteria", json.dumps(asked),
        "--asked-by", "fluency",
    )  # fmt: skip
    assert made.output == "two\n"
    assert settings_of(easel, "two")["criteria"] == asked
    assert easel("campaign", "edit", "two", "--criteria", "", "--asked-by", "").exit_code == 0
    assert settings_of(easel, "two")["criteria"] == []
    assert "(settings_unreadable)" in easel("campaign", "edit", "two", "--criteria", "[").stderr


def test_annotators_are_listed_held_excluded_and_restored(easel, files, running):
    easel("campaign", "import-responses", running, files / "results.csv")
    rows = easel("annotators", "list", running).output.splitlines()
    assert (len(rows), rows[1].split()[:3]) == (2, ["A1", "1", "1"])
    why = ("--reason", "answers at random")
    assert easel("annotators", "exclude", running, "A1", *why).output == "A1 of verbs: exclude done.\n"
    assert easel("verify", running).output.startswith("Replayed 0 responses")
    (line,) = json.loads(easel("annotators", "list", running, "--json").output)
    assert (line["barred"], line["barred_reason"], line["counted"]) == ("excluded", "answers at random", 0)
    assert "(already_excluded)" in easel("annotators", "exclude", running, "A1", *why).stderr
    easel("annotators", "restore", running, "A1", *why)
    (answer,) = json.loads(easel("annotators", "answers", running, "A1", "--json").output)
    easel("annotators", "exclude-answer", running, answer["seq"], *why)
    assert "left out" in easel("annotators", "answers", running, "A1").output
    easel("annotators", "restore-answer", running, answer["seq"], *why)
    assert easel("verify", running).output.startswith("Replayed 1 responses")
    easel("annotators", "hold", running, "A1", *why)
    assert "held" in easel("annotators", "list", running, "--sort", "standing").output
    easel("annotators", "release", running, "A1", *why)
    assert easel("annotators", "hold", running, "A1").exit_code == 2  # without a reason


def test_what_rules_found_is_listed(easel, files, running, database_url):
    easel("campaign", "import-responses", running, files / "results.csv")
    assert easel("annotators", "findings", running).output == ""
    found = """
        INSERT INTO findings (campaign_id, annotator_id, rule, action, seen, said, found_at)
        SELECT campaign_id, id, 'gold', 'warn', '{"failed": 5}', 'Failed 5 of 5 gold items.', '2026-11-01 12:00+00'
        FROM annotators
    """
    run_sql(database_url, found)
    listed = easel("annotators", "findings", running).output
    assert listed == "A1  2026-11-01 12:00  gold (warn)  Failed 5 of 5 gold items.\n"
    easel("annotators", "hold", running, "A1", "--reason", "look")
    assert "gold (warn, now held)" in easel("annotators", "findings", running).output
    (line,) = json.loads(easel("annotators", "findings", running, "--json").output)
    assert (line["name"], line["seen"], line["barred"]) == ("A1", {"failed": 5}, "held")
