"""Measure how long the admin pages about annotators take: `python -m benchmarks.annotator_pages [--answers 200000]`.

A running campaign has the given number of answers from 100 annotators. Each page is opened five times. The first time
has its own column, because a process caches some figures until new answers arrive.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time

import httpx
import numpy as np

from benchmarks.exclusions import store_answers_of_others
from benchmarks.large import create_campaign_without_end
from benchmarks.serving import run_server
from benchmarks.temporary_database import run_temporary_database

PATHS_BY_PAGE = {
    "annotators": "annotators",
    "one annotator": "annotators/A7",
    "quality inbox": "checks",
}
OPENINGS = 5


def log_in(url: str, base: str) -> httpx.Client:
    """Log in as a researcher and return a client with the session."""
    command = [sys.executable, "-m", "app.cli", "login"]
    environment = os.environ | {"DATABASE_URL": url}
    link = subprocess.run(command, check=True, env=environment, capture_output=True, text=True).stdout.strip()
    client = httpx.Client(base_url=base, timeout=120)
    reply = client.post("/login", data={"token": link.partition("token=")[2]}, headers={"Origin": base})
    if reply.status_code != httpx.codes.SEE_OTHER:
        raise RuntimeError(f"the login was answered with {reply.status_code}")
    return client


def seconds_to_open(client: httpx.Client, path: str) -> float:
    start = time.perf_counter()
    client.get(path).raise_for_status()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=200_000)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--port", type=int, default=8923)
    options = parser.parse_args()
    with run_temporary_database() as database, run_server(database.url, options.port, 1):
        task = asyncio.run(create_campaign_without_end(database.url, options.port, items=options.items))
        asyncio.run(store_answers_of_others(database.url, task.slug, options.answers, options.items))
        client = log_in(database.url, f"http://127.0.0.1:{options.port}")
        print("| page | first, s | then, s (median) |\n|---|---|---|", flush=True)
        for name, path in PATHS_BY_PAGE.items():
            first, *rest = (seconds_to_open(client, f"/admin/campaigns/{task.slug}/{path}") for _ in range(OPENINGS))
            print(f"| {name} | {first:.2f} | {np.median(rest):.2f} |", flush=True)


if __name__ == "__main__":
    main()
