from app.campaigns import form
from app.campaigns.settings import CampaignSettings


def test_what_a_form_shows_reads_back_as_the_same_settings():
    settings = CampaignSettings(
        name="Verbs", question="How?", update_law="ra", prior=[2, 3], repeat_items=False, middle_label="so-so",
        hits_per_annotator=4, instructions="Think.\n\n- twice",
    )  # fmt: skip
    browser = {name: value for name, value in form.filled(settings).items() if value}
    assert form.read(browser) == settings


def test_a_blank_form_has_the_defaults():
    browser = {name: value for name, value in form.blank().items() if value}
    assert form.read(browser | {"name": "a", "question": "b"}) == CampaignSettings(name="a", question="b")


def test_what_is_left_out_has_its_default_but_switches_are_off():
    settings = form.read({"name": "a", "question": "b"})
    assert settings.items_per_hit == 5
    assert not settings.show_numbers
