"""Work of a server process that no request waits for: loops that go on after any failure, tasks by key, threads."""
