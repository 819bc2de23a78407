"""Pages of recordings, pictures and videos call them so, in the languages of the campaign."""

import pytest

from tests.media.files import wav, with_files

pytestmark = pytest.mark.usefixtures("app")

FILES = {f"take{k}.wav": wav(0.1 * k) for k in range(1, 4)}


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "You hear two recordings at a time and choose one of them, or say that they are about equal."),
        ("de", "Sie hören jeweils zwei Aufnahmen und wählen eine davon, oder sagen, dass sie etwa gleich sind."),
        ("ja", "一度に二つの録音を聞きます。どちらかを選ぶか、ほぼ同じであると答えます。"),
    ],
)
async def test_the_welcome_page_speaks_of_recordings(engine, client, language, sentence):
    campaign = await with_files(engine, FILES, content="audio", design="pairwise", items_per_hit=2, open_link=True)
    page = await client.get(f"/link/{campaign.link_key}", headers={"Accept-Language": language})
    assert sentence in page.text
