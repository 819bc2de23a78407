"""`easel analyse`: what it prints for people, for spreadsheets and for programs."""

import csv
import io
import json
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from app.analysis.result_types import Column, ResultTable
from app.cli.analysis import AnalysisOutput, iterate_text_lines_of_output
from app.cli.commands import easel as command
from tests.analysis.answers import OFFERED

ITEMS = "id,text\n" + "".join(f"v{k},verb {k}\n" for k in range(6))
RESULTS = (
    "AssignmentId,WorkerId,Input.id1,Input.id2,Input.id3,Answer.range1,Answer.range2,Answer.range3\n"
    "A1,W1,v0,v1,v2,10,50,90\nA2,W2,v0,v1,v3,20,60,30\nA3,W1,v3,v4,v2,40,70,80\nA4,W3,v0,v2,v4,0,100,65\n"
)


@pytest.fixture
def easel(database_url, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", database_url)

    def run(*arguments: object):
        result = CliRunner().invoke(command, [str(argument) for argument in arguments])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def launched(easel, tmp_path):
    (tmp_path / "items.csv").write_text(ITEMS)
    easel("campaign", "create", "--name", "Verbs", "--question", "How often?")
    easel("campaign", "import", "verbs", tmp_path / "items.csv")
    easel("campaign", "launch", "verbs")
    return "verbs"


@pytest.fixture
def answered_campaign(easel, launched, tmp_path):
    (tmp_path / "results.csv").write_text(RESULTS)
    easel("campaign", "import-responses", launched, tmp_path / "results.csv")
    return launched


@pytest.fixture
def judged_systems(easel, tmp_path):
    fields = "".join(f"v{k},verb {k},{'xyz'[k % 3]},{k // 3}\n" for k in range(6))
    (tmp_path / "systems.csv").write_text("id,text,system,segment\n" + fields)
    (tmp_path / "systems_results.csv").write_text(RESULTS)
    easel("campaign", "create", "--name", "Systems", "--question", "How good?")
    easel("campaign", "import", "systems", tmp_path / "systems.csv")
    easel("campaign", "launch", "systems")
    easel("campaign", "import-responses", "systems", tmp_path / "systems_results.csv")
    return "systems"


def test_without_a_method_it_says_what_there_is(easel, judged_systems):
    output = easel("analyse", judged_systems).output
    for name in (*OFFERED.scores, *OFFERED.tables):
        assert name.replace("_", "-") in output
    assert "Bradley-Terry. The odds" in output


def test_tables_of_systems_are_not_offered_where_items_name_none(easel, answered_campaign):
    output = easel("analyse", answered_campaign).output
    assert "label-items" in output
    assert "graded-response" not in output


def test_numbers_have_as_many_decimals_as_their_column_needs_and_no_powers_of_ten():
    columns = (Column("id", "Id", "text"), Column("probability", "Probability"), Column("confidence", "Confidence"))
    found = AnalysisOutput(ResultTable(columns, [("a", 6.698e-09, 1.0), ("b", 3.146e-20, 1.0), ("c", -0.25, None)]))
    rows = [line.split() for line in "".join(iterate_text_lines_of_output(found, 80)).splitlines()[1:]]
    assert rows == [["a", "0.000", "1.000"], ["b", "0.000", "1.000"], ["c", "-0.250", "-"]]


def test_each_measure_has_decimals_of_its_own():
    columns = (Column("measure", "Name", "text"), Column("value", "Value"))
    rows = "".join(
        iterate_text_lines_of_output(AnalysisOutput(ResultTable(columns, [("kappa", 0.5), ("items", 40.0)])), 80)
    ).splitlines()[1:]
    assert [row.split() for row in rows] == [["kappa", "0.500"], ["items", "40"]]


def test_scores_are_a_table_with_what_the_method_assumes(easel, answered_campaign):
    lines = easel("analyse", answered_campaign, "--method", "mean").output.splitlines()
    assert lines[0].startswith("Mean (points, 0 to 100). All judgments count equally")
    (head,) = (number for number, line in enumerate(lines) if line.startswith("Id"))
    assert lines[head].split()[:3] == ["Id", "Item", "Judgments"]
    assert lines[head + 1].split()[:5] == ["v0", "verb", "0", "3", "10.0"]
    assert re.fullmatch(r"\d\.\d\d", lines[head + 1].split()[-1])
    assert lines[head + 6].split() == ["v5", "verb", "5", "0", "-", "-", "-", "-"]
    assert "1 item has no judgment and no score." in lines


def test_csv_has_all_digits_and_its_notes_go_to_stderr(easel, answered_campaign):
    result = easel("analyse", answered_campaign, "--method", "mean", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert re.fullmatch(r"\d\.\d{14,}", rows[0]["standard_error"])
    assert rows[5]["score"] == ""
    assert "1 item has no judgment and no score." in result.stderr.splitlines()


def test_several_methods_stand_side_by_side(easel, answered_campaign):
    found = json.loads(
        easel("analyse", answered_campaign, "--method", "mean", "--method", "elo", "--format", "json").output
    )
    assert {"id", "mean", "mean_low", "elo", "elo_high"} <= {*found["rows"][0]}
    assert any(note.startswith("Elo: ") for note in found["notes"])


def test_of_several_methods_one_that_cannot_score_is_empty_and_says_why(easel, launched, tmp_path):
    (tmp_path / "results.csv").write_text(RESULTS.replace(",10,50,90", ",50,50,50").split("A2")[0])
    easel("campaign", "import-responses", launched, tmp_path / "results.csv")
    found = json.loads(
        easel("analyse", launched, "--method", "mean", "--method", "rao_kupper", "--format", "json").output
    )
    assert (found["rows"][0]["mean"], found["rows"][0]["rao_kupper"]) == (50.0, None)
    assert any(note.startswith("Rao-Kupper: All comparisons are ties") for note in found["notes"])


def test_two_methods_are_compared(easel, answered_campaign):
    output = easel("analyse", answered_campaign, "--method", "mean", "--against", "trueskill").output
    assert output.startswith("Mean and TrueSkill: 5 items have a score by both.\nSpearman: ")
    found = json.loads(
        easel("analyse", answered_campaign, "--method", "mean", "--against", "elo", "--format", "json").output
    )
    assert (found["one"], found["other"], found["n"]) == ("mean", "elo", 5)
    assert [figure["name"] for figure in found["figures"]] == ["spearman", "pearson", "kendall", "ndcg"]


def test_a_table_for_people_has_its_sentences_below(easel, answered_campaign):
    output = easel("analyse", answered_campaign, "--table", "consistency").output
    assert output.startswith("Consistency\nWhether judgments")
    assert (
        "Transitivity kappa: No annotator judged the three pairs of any three items in three different tasks"
        in " ".join(output.split())
    )


@pytest.mark.parametrize("shape", ["table", "csv", "json"])
def test_every_table_comes_in_every_format(easel, answered_campaign, shape):
    for name in (name for name in OFFERED.tables if not name.startswith(("graded", "scale"))):
        result = easel("analyse", answered_campaign, "--table", name, "--format", shape)
        assert result.exit_code == 0, result.output
        assert "nan" not in result.output.lower()


def test_labels_are_cut_into_the_classes_asked_for(easel, answered_campaign):
    found = json.loads(
        easel("analyse", answered_campaign, "--table", "labels", "--classes", "4", "--format", "json").output
    )
    assert [row["label"] for row in found["rows"]] == ["0 to 25", "25 to 50", "50 to 75", "75 to 100"]
    exported = easel("export", answered_campaign, "item_labels", "--classes", "4").output
    assert "v0,verb 0,3,0 to 25," in exported


def test_it_goes_to_a_file(easel, answered_campaign, tmp_path):
    assert (
        easel(
            "analyse", answered_campaign, "--method", "elo", "--format", "csv", "--output", tmp_path / "elo.csv"
        ).stdout
        == ""
    )
    assert (tmp_path / "elo.csv").read_text() == easel(
        "analyse", answered_campaign, "--method", "elo", "--format", "csv"
    ).stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--method", "mean"), "no_judgments"),
        (("--table", "agreement"), "no_judgments"),
        (("--method", "mean", "--against", "elo"), "no_judgments"),
        (("--table", "graded_response", "--baseline", "x"), "no_judgments"),
    ],
)
def test_what_cannot_be_estimated_is_one_line_with_a_code(easel, launched, arguments, code):
    result = easel("analyse", launched, *arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith("easel: There are no judgments yet")
    assert result.stderr.endswith(f"({code})\n")
    assert result.stderr.count("\n") == 1


def test_an_unknown_campaign_is_refused_even_where_nothing_is_fitted(easel):
    assert easel("analyse", "none").stderr.endswith("(campaign_not_found)\n")


def test_options_that_do_not_go_together_are_refused(easel, answered_campaign, subtests):
    for arguments in (
        ("--table", "labels", "--method", "mean"),
        ("--against", "mean"),
        ("--method", "mean", "--method", "elo", "--against", "easl"),
        ("--table", "labels", "--against", "mean"),
    ):
        with subtests.test(arguments=arguments):
            result = easel("analyse", answered_campaign, *arguments)
            assert result.exit_code == 2
            assert "one --method with --against" in result.stderr


# On a terminal of 80 columns


@pytest.fixture
def wide(easel, answered_campaign, monkeypatch):
    """Return a function that runs the command on a terminal with some columns, and returns its lines."""

    def run(*arguments: object, columns: int = 80) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        output: str = easel("analyse", answered_campaign, *arguments).output
        return output.splitlines()

    return run


def test_no_line_is_wider_than_the_terminal_and_no_word_is_lost(wide, subtests):
    for arguments in (
        (),
        ("--table", "agreement"),
        ("--table", "agreement", "--explain"),
        ("--table", "annotators"),
        ("--table", "consistency"),
        ("--table", "label_annotators", "--classes", "10"),
        ("--table", "label_items", "--classes", "10"),
        ("--method", "mean", "--method", "elo", "--method", "easl-aware"),
        ("--method", "mean", "--against", "trueskill"),
    ):
        with subtests.test(arguments=arguments):
            whole = wide(*arguments, columns=1000)
            for columns in (80, 60):
                lines = wide(*arguments, columns=columns)
                assert max(map(len, lines)) <= columns
                assert {*" ".join(whole).split()} <= {*" ".join(lines).split()} | {"(95", "%)", "%),"}


def test_a_table_that_is_too_wide_goes_on_below_with_the_same_first_column(wide, easel, answered_campaign):
    document = json.loads(easel("analyse", answered_campaign, "--table", "annotators", "--format", "json").output)
    first = document["columns"][0]["name"]
    lines = wide("--table", "annotators")
    for row in document["rows"]:
        assert len([line for line in lines if line.startswith(f"{row[first]} ")]) > 1


def test_the_sentences_of_coefficients_are_there_when_asked_for(wide):
    told, plain = (" ".join(wide("--table", "agreement", *more)) for more in (["--explain"], []))
    sentence = "0 is chance and 1 is complete agreement"
    assert sentence in told
    assert sentence not in plain


@pytest.mark.slow
def test_what_there_is_to_ask_for_is_told_without_loading_the_web_server_or_migrations(answered_campaign, database_url):
    program = "import sys; from app.cli import main\ntry:\n main()\nfinally:\n print(*sys.modules, file=sys.stderr)"
    arguments = [sys.executable, "-c", program, "analyse", answered_campaign]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=120)
    assert "--method mean" in done.stdout
    assert not {"fastapi", "uvicorn", "alembic", "scipy.optimize", "scipy.stats"} & {*done.stderr.split()}


def test_scores_and_systems_come_with_the_interval_to_report(easel, answered_campaign, tmp_path):
    def printed(*arguments):
        return " ".join(easel("analyse", *arguments).output.split())

    assert "Report the interval of Mean" in printed(answered_campaign, "--method", "easl")
    assert "Report the interval of Mean" in printed(answered_campaign, "--method", "mean", "--method", "easl")
    assert "Report the interval of" not in printed(answered_campaign, "--table", "agreement")


@pytest.mark.parametrize("name", ["z_scores", "z-scores", "easl-aware", "easl_aware", "shrunken-mean"])
def test_names_of_methods_have_hyphens_or_underscores(easel, answered_campaign, name):
    result = easel("analyse", answered_campaign, "--method", "mean", "--against", name, "--format", "json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["other"].replace("_", "-") == name.replace("_", "-")


def test_one_separator_is_shown_and_the_help_says_that_scores_of_systems_differ_from_means(easel, answered_campaign):
    shown = easel("analyse", "--help").output
    assert "z-scores" in shown
    assert "z_scores" not in shown
    assert "misfit-items" in shown
    assert "differ from those of --method mean" in " ".join(shown.split())
    assert "--method z-scores" in easel("analyse", answered_campaign).output
