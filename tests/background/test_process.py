"""Work in a child process."""

import uvloop

from app.background.process import run_in_process

CHARACTERS = 1_000_000  # many times what a pipe holds


async def long_text(length: int) -> str:
    return "x" * length


def test_a_result_that_is_longer_than_a_pipe_arrives_in_the_loop_of_a_server():
    assert uvloop.run(run_in_process(long_text, CHARACTERS)) == "x" * CHARACTERS
