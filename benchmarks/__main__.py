"""Run all benchmarks but `hostile` and `checkouts`, each in its own process: `python -m benchmarks [--llmfao FOLDER]`.

FOLDER contains llmfao.csv from the repository dustalov/evalica (commit 2ebe79e), which is not part of Easel. Without
it, two tables about this file are skipped. A complete run takes about 45 minutes.
"""

import argparse
import subprocess
import sys
from pathlib import Path


def main(llmfao_folder: Path | None) -> None:
    arguments_by_benchmark: dict[str, list[Path]] = {
        "selection": [],
        "index_memory": [],
        "serving": [],
        "bare_server": [],
        "open_hits": [],
        "large": [],
        "exclusions": [],
        "annotator_pages": [],
        "replay": [],
        "dawid_skene": [],
        "agreement": [],
        "analysis_page": [],
        "pairwise": [] if llmfao_folder is None else [llmfao_folder / "llmfao.csv"],
        "pairs": [],
        "implied": [],
        "balanced_tuples": [],
        "reliability_of_pairs": [],
        "label_confidence": [],
        "label_selection": [],
        "goals": [],
        "goal_progress_time": [],
        "populations": [],
        "graded_response": [] if llmfao_folder is None else [llmfao_folder],
        "annotator_aware": [],
        "coverage": [],
        "coverage_under_rules": [],
        "crowd_of_40": [],
        "published": [],
    }
    for name, arguments in arguments_by_benchmark.items():
        print(f"\n## {name}\n", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *arguments], check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmfao", type=Path, metavar="FOLDER")
    main(parser.parse_args().llmfao)
