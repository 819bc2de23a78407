"""Columns that hold nothing about a single annotator, each with what its table is about."""

from typing import NamedTuple


class OtherTable(NamedTuple):
    """A table without data about a single annotator: what it is about, and the names of all of its columns."""

    about: str
    columns: frozenset[str]


def other_table(about: str, columns: str) -> OtherTable:
    return OtherTable(about, frozenset(columns.split()))


RESEARCHERS = "researchers; `easel people` and the page Researchers remove them"
ITEMS = "items"
SCORES = "scores of items"

OTHER_TABLES = {
    "installation": other_table("the server", "single secret_key"),
    "exclusive_work": other_table("the server", "work holder deadline"),
    "users": other_table(RESEARCHERS, "id name password_hash created_at role"),
    "logins": other_table(RESEARCHERS, "token_hash user_id created_at expires_at idle_at by_link_at"),
    "identities": other_table(RESEARCHERS, "issuer subject user_id connected_at"),
    "one_time_logins": other_table(RESEARCHERS, "token_hash user_id expires_at"),
    "login_failures": other_table(RESEARCHERS, "id name address failed_at browser"),
    "api_tokens": other_table(
        RESEARCHERS,
        "id user_id name token_hash created_at last_used_at last_used_from scopes campaign_id",
    ),
    "campaign_members": other_table(RESEARCHERS, "campaign_id user_id role added_at"),
    "invitations": other_table(RESEARCHERS, "id token_hash campaign_id role words invited_by created_at expires_at"),
    "campaign_links": other_table(RESEARCHERS, "campaign_id id token_hash words made_by made_at"),
    "alert_messages": other_table(RESEARCHERS, "campaign_id alert_id way receiver tries next_try_at sent_at problem"),
    "campaigns": other_table(
        "settings of researchers; addresses of alerts are theirs",
        """
        id slug link_key status design design_settings fewest_items always_shown segment_count name question
        instructions low_label middle_label high_label language criteria criteria_shown items_per_hit show_numbers
        content source_column reference_column differences https_media latex minutes_per_hit pay pay_per_hit currency
        in_short leave_early undo break_minutes update_law prior gamma epsilon tie_margin_points rule asked_criterion
        selection hits_per_iteration leaders_as_companions best_items threshold seed goal_reached releases
        judgments_per_item hits_per_annotator repeat_items implied_asked_percent lease_minutes cannot_be_judged
        unjudged_reasons unjudged_people comment_on flag_on flag_reasons flag_people open_link open_platforms passphrase
        people_per_address visit_version checks_percent gold_feedback has_checks alert_emails alert_webhook
        alert_quiet_minutes general_settings crowd_settings visit_settings quality_settings goal_settings revision
        decided iteration created_at launched_at finished_at archived_at step_versions newest_plan rehearsal_of
        """,
    ),
    "payment_accounts": other_table(
        "connections to platforms",
        "campaign_id platform token token_variable workspace study other_studies currency budget approves hook_key "
        "hook_secret send_through due_at held_until checked_at problem connected_by connected_at budget_covers_rewards "
        "hook_subscription hook_problem",
    ),
    "payment_calls": other_table("calls that pay", "workspace batch held_until"),
    "service_notices": other_table("notices of platforms", "campaign_id event_id received_at"),
    "experiment_arms": other_table("experiments", "experiment arm campaign_id link_key"),
    "consent_texts": other_table("texts to agree to", "campaign_id version markdown sha256 since"),
    "items": other_table(ITEMS, "campaign_id number external_id shown fields prior retired_at"),
    "item_versions": other_table(ITEMS, "campaign_id item version shown last_hit replaced_at"),
    "segments": other_table(ITEMS, "campaign_id number external_id source reference"),
    "outputs": other_table(ITEMS, "campaign_id segment item shown digest"),
    "output_versions": other_table(ITEMS, "campaign_id segment item version shown last_hit replaced_at"),
    "media": other_table(ITEMS, "campaign_id number name address content_type size"),
    "media_pieces": other_table(ITEMS, "campaign_id number place data"),
    "check_items": other_table(ITEMS, "campaign_id number external_id kind shown expected fields segment"),
    "planned_hits": other_table(ITEMS, "campaign_id iteration ordinal leader items drawn_because leader_probability"),
    "counted_judgments": other_table(
        SCORES, "campaign_id revision decided always_shown server_started watermark judgments"
    ),
    "posteriors": other_table(
        SCORES, "campaign_id revision criterion subject state score variance judgments unjudged settled"
    ),
    "visit_allowances": other_table(
        "network addresses as keyed hashes, kept for an hour", "campaign_id address full_at share"
    ),
    "visit_refusals": other_table("counts by day", "campaign_id day refused"),
    "crowds": other_table("simulated annotators", "campaign_id described led_until"),
    "undone_withdrawals": other_table("receipts of withdrawals that were taken back", "campaign_id receipt undone_at"),
    "retention_runs": other_table("counts of what retention erased", "campaign_id kind ran_at finished_at counts"),
}
