from app.campaigns import form, form_input, form_values
from app.campaigns.settings import CampaignSettings
from app.designs.registry import DESIGNS


def test_what_a_form_shows_reads_back_as_the_same_settings():
    settings = CampaignSettings(
        name="Verbs", question="How?", update_law="ra", prior=[2, 3], repeat_items=False, middle_label="so-so",
        hits_per_annotator=4, instructions="Think.\n\n- twice",
    )  # fmt: skip
    browser = {name: value for name, value in form_values.form_values_of_settings(settings).items() if value}
    assert form_input.parse_settings_form(browser) == settings


def test_a_blank_form_has_the_defaults():
    browser = {name: value for name, value in form_values.new_campaign_form_values().items() if value}
    assert form_input.parse_settings_form(browser | {"name": "a", "question": "b"}) == CampaignSettings(
        name="a", question="b"
    )


def test_what_is_left_out_has_its_default_but_switches_are_off():
    settings = form_input.parse_settings_form({"name": "a", "question": "b"})
    assert settings.items_per_hit == 5
    assert not settings.show_numbers


def fields():
    return {
        one.name: one
        for part in form.build_form_sections(form_values.new_campaign_form_values())
        for one in (*part.basic_fields, *part.advanced_fields)
    }


def test_every_choice_offers_what_is_chosen_where_nobody_chooses():
    unable = [name for name, field in fields().items() if field.kind == "choice" and field.value not in field.choices]
    assert unable == []


def test_rules_that_read_labels_are_offered_where_labels_are_counted():
    rule = fields()["rule"]
    assert rule.designs_by_choice["easl"].split() == [*DESIGNS]
    assert "categories" in rule.designs_by_choice["information"].split()
    assert "slider" not in rule.designs_by_choice["information"].split()


def test_to_skip_implied_pairs_is_offered_where_any_two_items_are_compared():
    assert fields()["implied_asked_percent"].designs == "pairwise"


def test_what_stands_in_the_form_for_another_way_of_asking_is_no_mistake():
    browser = {"name": "a", "question": "b", "implied_asked_percent": "10", "repeat_items": "on"}
    assert form_input.parse_settings_form(browser | {"design": "slider"}).implied_asked_percent is None
    assert form_input.parse_settings_form(browser | {"design": "pairwise"}).implied_asked_percent == 10


def test_no_folded_field_that_stands_empty_must_be_filled_in():
    """A browser could neither send such a form nor show what is missing."""
    folded = [
        field
        for section in form.build_form_sections(form_values.new_campaign_form_values())
        for field in section.advanced_fields
    ]
    assert [it.name for it in folded if it.required and not it.value and it.kind != "switch"] == []
