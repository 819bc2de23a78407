"""The pages and files that people look for first agree with the tree: README, developers' guide, .github and others."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
DEVELOPERS = "\n".join(page.read_text() for page in sorted((ROOT / "docs" / "developers").glob("*.md")))
BENCHMARKS = (ROOT / "docs" / "reference" / "benchmarks.md").read_text()
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
PLACEHOLDERS = ("NAME", "LANGUAGE")


def is_pattern(text):
    return any(word in text for word in PLACEHOLDERS)


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 200
    assert len(re.findall(r"!\[", README)) == 2


def test_ci_runs_the_command_that_the_readme_names():
    commands = [step["run"] for step in WORKFLOW["jobs"]["test"]["steps"] if "run" in step]
    assert commands == ["make test"]
    assert "\nmake test " in README


def test_every_path_in_the_developers_guide_exists():
    paths = re.findall(r"`((?:app|templates|static|tests|docs|examples)/[\w./-]+)`", DEVELOPERS)
    assert len(paths) > 20
    assert [path for path in paths if not is_pattern(path) and not (ROOT / path).exists()] == []


def test_every_name_in_the_developers_guide_is_in_the_code():
    sources = [path for folder in ("app", "static", "templates", "tests") for path in (ROOT / folder).rglob("*")]
    code = "\n".join(path.read_text() for path in sources if path.suffix in {".py", ".js", ".html"})
    names = {name for name in re.findall(r"`(\w+)`", DEVELOPERS) if not is_pattern(name)}
    assert len(names) > 30
    assert names - set(re.findall(r"\w+", code)) == set()
    constants = {name for name in names if re.fullmatch(r"[A-Z_]+", name)}
    assert constants - set(re.findall(r"^\w+", code, re.MULTILINE)) == set()


def test_every_benchmark_that_is_named_exists():
    named = set(re.findall(r"python -m benchmarks\.(\w+)", README + BENCHMARKS)) - {"NAME"}
    named |= set(re.findall(r"^\| (\w+) \|", BENCHMARKS.partition("## Methods")[2], re.MULTILINE)) - {"NAME", "crowd"}
    assert {"dawid_skene", "serving", "coverage"} <= named
    assert {name for name in named if name.isalpha() or "_" in name} - {
        path.stem for path in (ROOT / "benchmarks").glob("*.py")
    } == set()


def test_figures_of_the_readme_are_those_of_the_benchmarks():
    section = README.partition("## Performance")[2].partition("\n## ")[0]
    figures = re.findall(r"[\d.]+(?= (?:ms|µs|s\b))", section)
    assert len(figures) > 8
    assert [figure for figure in figures if not re.search(rf"\b{re.escape(figure)}\b", BENCHMARKS)] == []


def test_commit_hooks_use_the_locked_ruff():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook for repository in config["repos"] for hook in repository["hooks"]]
    assert {repository["repo"] for repository in config["repos"]} == {"local"}
    assert {hook["entry"].split()[0] for hook in hooks} == {".venv/bin/ruff"}


def test_the_citation_names_the_paper_of_the_readme():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    (paper,) = citation["references"]
    assert citation["cff-version"] == "1.2.0"
    assert paper["title"] in README
    assert paper["url"] in README
    assert f"pages {paper['start']}–{paper['end']}" in README
