"""Every benchmark but `hostile`, which takes an hour, each in a process: `python -m benchmarks [--llmfao FOLDER]`.

FOLDER holds llmfao.csv of the repository dustalov/evalica (commit 2ebe79e), which is not part of Easel; without it the
two tables about it are left out. All of it takes about three quarters of an hour.
"""

import argparse
import subprocess
import sys
from pathlib import Path


def main(llmfao: Path | None) -> None:
    arguments: dict[str, list[Path]] = {
        "selection": [],
        "serving": [],
        "open_hits": [],
        "large": [],
        "exclusions": [],
        "annotator_pages": [],
        "replay": [],
        "dawid_skene": [],
        "agreement": [],
        "analysis_page": [],
        "pairwise": [] if llmfao is None else [llmfao / "llmfao.csv"],
        "pairs": [],
        "implied": [],
        "balanced_tuples": [],
        "reliability_of_pairs": [],
        "label_confidence": [],
        "label_selection": [],
        "goals": [],
        "goal_looks": [],
        "populations": [],
        "graded_response": [] if llmfao is None else [llmfao],
        "annotator_aware": [],
        "coverage": [],
        "coverage_under_rules": [],
        "crowd_of_40": [],
        "published": [],
    }
    for name, files in arguments.items():
        print(f"\n## {name}\n", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *files], check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmfao", type=Path, metavar="FOLDER")
    main(parser.parse_args().llmfao)
