"""An import of answers that stops as if its process were killed."""

import pytest

from tests.campaigns.drafts import import_results


async def interrupt_import(engine, campaign, results, name="results.csv"):
    """Import answers, and stop as a killed process does, after the first transaction."""

    class Killed(BaseException):
        pass

    def stop(_rows):
        raise Killed

    with pytest.raises(Killed):
        await import_results(engine, campaign, results, name, progress=stop)
