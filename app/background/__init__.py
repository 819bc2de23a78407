"""Background work of a server process: loops, keyed tasks, child processes, threads, and the checks behind `/ready`.

Main types: `BackgroundLoop` (repeats a round of work), `KeyedTasks` (one task per campaign), `ReadinessChecks`,
`CheckResult`, `ProcessMetrics` (counts and durations for `/metrics`). `run_in_process` runs long computations in a
child process; `progress_stream.iterate_progress_then_outcome` yields the progress reports of a long job to the page
that waits for it.

Open `loop.py` first, then `tasks.py` and `process.py`.
"""
