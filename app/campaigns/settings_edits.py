"""Changes of settings: of a draft, or of what a launch leaves open; two people never overwrite each other unseen."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Integer, cast, exists, func, select, true, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.onboarding import visit_version
from app.campaigns.called_addresses import refuse_called_addresses_without_tls
from app.campaigns.conditions_check import refuse_limit_that_moves_blocks
from app.campaigns.form_sections import STEP_BY_SETTING, STEP_TITLES, StepName
from app.campaigns.launch import refuse_if_all_items_are_best
from app.campaigns.lifecycle import (
    campaign_column_values_of_settings,
    campaign_of_unsaved_settings,
    lock_and_load_campaign_or_refuse,
    require_draft,
    unchecked_settings_with_deliverable_emails,
)
from app.campaigns.referenced_campaigns import refuse_campaigns_out_of_reach
from app.campaigns.settings import CampaignSettings
from app.campaigns.tags import TagSettings
from app.database.audit_log import log_change, old_and_new_values_that_differ
from app.database.campaign import number_of_items_sql
from app.database.tables import campaigns, items
from app.designs.campaign import Campaign, pack_section_settings_into_columns
from app.designs.field_flags import editability_code_after_launch_or_none, is_omitted_from_campaign_files
from app.errors import Conflict
from app.errors import join_names as listed_names

HIDDEN_LOG_VALUE = "•••"  # replaces private settings in the audit log
# Title of each setting that can be changed after a launch.
SETTINGS_EDITABLE_AFTER_LAUNCH = {
    name: str(field.title)
    for name, field in CampaignSettings.model_fields.items()
    if editability_code_after_launch_or_none(field)
}


@dataclass(frozen=True)
class SavedStep:
    """The step of the settings form that is saved, and its version when the form was opened; None if unknown."""

    name: StepName
    opened_version: int | None = None

    @property
    def is_current_sql_condition(self) -> ColumnElement[bool]:
        """Return the SQL condition that no one has changed the step since the form was opened."""
        if self.opened_version is None:
            return true()
        stored_version = cast(campaigns.c.step_versions[self.name].astext, Integer)
        return func.coalesce(stored_version, 0) == self.opened_version


async def store_changed_settings_or_refuse(
    connection: AsyncConnection,
    slug: str,
    change_settings: Callable[[CampaignSettings], CampaignSettings],
    saved_step: SavedStep | None = None,
) -> Campaign:
    """Change the settings of a draft, or those settings of a launched campaign that may change.

    They are read under a lock, so two concurrent edits of different settings are both kept. The slug never changes, so
    noted links keep working. A change of a launched campaign applies to HITs handed out from then on.

    Raises:
        Conflict: `step_changed` if someone changed the saved step after its form was opened, and what
            `lock_and_load_campaign_or_refuse`, `refuse_campaigns_out_of_reach`, `refuse_called_addresses_without_tls`,
            `refuse_changes_fixed_by_launch` and `refuse_limit_that_moves_blocks` raise.

    """
    campaign = await lock_and_load_campaign_or_refuse(connection, slug)
    old_settings = unchecked_settings_with_deliverable_emails(campaign)
    new_settings = change_settings(old_settings)
    if campaign.status != "draft":
        refuse_changes_fixed_by_launch(campaign, old_settings, new_settings)
    await refuse_limit_that_moves_blocks(connection, campaign, new_settings.hits_per_annotator)
    await refuse_law_misreading_item_priors(connection, campaign, new_settings)
    await refuse_campaigns_out_of_reach(connection, new_settings, old_settings)
    refuse_called_addresses_without_tls(new_settings, old_settings)
    tags = {*TagSettings.model_fields}
    is_unchanged = new_settings.model_dump(exclude=tags) == old_settings.model_dump(exclude=tags)
    old_values, new_values = old_and_new_values_that_differ(old_settings.model_dump(), new_settings.model_dump())
    changes = campaign_column_values_of_settings(new_settings)
    changes["newest_plan"] = campaign.newest_plan if is_unchanged else None
    changes["step_versions"] = step_versions_after_change(campaign.step_versions, new_values, saved_step)
    is_current = saved_step.is_current_sql_condition if saved_step else true()
    statement = (
        update(campaigns)
        .where(campaigns.c.id == campaign.id, is_current)
        .values(pack_section_settings_into_columns(changes))
    )
    columns = (await connection.execute(statement.returning(campaigns))).mappings().one_or_none()
    if columns is None:
        raise step_changed_error(campaign, saved_step)
    row = Campaign.from_columns(columns)
    if row.status != "draft" and row.goal != old_settings.goal:
        refuse_if_all_items_are_best(row, await connection.scalar(select(number_of_items_sql(row.id))) or 0)
    await visit_version.create_visit_version_if_consent_changed(connection, old_settings, row)
    if new_values:
        hidden_old_values, hidden_new_values = (
            settings_with_private_values_hidden(old_values),
            settings_with_private_values_hidden(new_values),
        )
        await log_change(
            connection, "settings.changed", row, old_values=hidden_old_values, new_values=hidden_new_values
        )
    return row


def step_versions_after_change(
    versions: Mapping[str, int], changed_settings: Collection[str], saved_step: SavedStep | None
) -> dict[str, int]:
    """Return the version number of each step after a change of settings: one more for each changed step.

    A step that was saved without a change is noted, too. What a campaign needs depends on the selection rule, so a
    change of the rule counts for both steps. A step that the form of another step changed is marked until it is saved.
    """
    changed_steps: set[str] = {STEP_BY_SETTING[name] for name in changed_settings}
    changed_steps |= {STEP_BY_SETTING["goal"]} if "rule" in changed_settings else set()
    saved: dict[str, int] = {saved_step.name: versions.get(saved_step.name, 0)} if saved_step else {}
    unsaved = changed_steps - {saved_step.name, *versions} if saved_step else set()
    marks = {mark_of_step_changed_elsewhere(step): 1 for step in unsaved}
    former = dict(versions)
    if saved_step:
        former.pop(mark_of_step_changed_elsewhere(saved_step.name), None)
    return {**former, **saved, **marks, **{step: versions.get(step, 0) + 1 for step in changed_steps}}


def mark_of_step_changed_elsewhere(step: str) -> str:
    """Return the key among the versions of steps that marks one which only the forms of other steps have changed."""
    return f"{step} elsewhere"


def step_changed_error(campaign: Campaign, saved_step: SavedStep | None) -> Conflict:
    """Return the refusal of a form that was opened before someone else saved the same step."""
    title = STEP_TITLES[saved_step.name] if saved_step else ""
    return Conflict(
        f"Someone else changed “{title}” after you opened it. Nothing was saved. Your entries are kept here: compare "
        "them, then save again.",
        code="step_changed",
        step=saved_step.name if saved_step else "",
        campaign=campaign.slug,
    )


def settings_with_private_values_hidden(setting_values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings for the audit log, which researchers of all campaigns can read."""
    fields = CampaignSettings.model_fields
    return {
        name: HIDDEN_LOG_VALUE if is_omitted_from_campaign_files(fields[name]) and value else value
        for name, value in setting_values.items()
    }


def refuse_changes_fixed_by_launch(
    campaign: Campaign, old_settings: CampaignSettings, new_settings: CampaignSettings
) -> None:
    """Refuse changes that a launched campaign does not allow.

    Raises `Conflict`: `not_a_draft` if a change alters what stored answers mean, `only_more` for a lower number where
    only a higher one is possible.
    """
    fields = CampaignSettings.model_fields
    launch_rule_by_changed_setting = {
        name: editability_code_after_launch_or_none(fields[name])
        for name, value in old_settings
        if getattr(new_settings, name) != value
    }
    if fixed_titles := [
        str(fields[name].title) for name, left in launch_rule_by_changed_setting.items() if left is None
    ]:
        rule = (
            f"{listed_names(fixed_titles)} cannot change now, because existing answers would change their meaning. "
            "Nothing was changed. "
        )
        require_draft(campaign, f"{rule}Copy the campaign to change the question")
    for name, left in launch_rule_by_changed_setting.items():
        if left == "only more" and getattr(new_settings, name) < getattr(old_settings, name):
            raise Conflict(
                f"“{campaign.name}” is {campaign.status}: {fields[name].title} is {getattr(old_settings, name)} and "
                "can only be raised. Nothing was changed.",
                code="only_more",
                setting=name,
                least=getattr(old_settings, name),
            )


async def refuse_law_misreading_item_priors(
    connection: AsyncConnection, campaign: Campaign, settings: CampaignSettings
) -> None:
    """Refuse a law that would misread the priors that items came with: alpha and beta are not mu and sigma2."""
    old_parameters, new_parameters = (
        law.family.parameter_names for law in (campaign.law, campaign_of_unsaved_settings(settings).law)
    )
    has_own_priors = exists().where(items.c.campaign_id == campaign.id, items.c.prior.is_not(None))
    if old_parameters != new_parameters and await connection.scalar(select(has_own_priors)):
        raise Conflict(
            f"The items were imported with {' and '.join(old_parameters)}, which the update law {settings.update_law} "
            "cannot use. Nothing was changed. Import the items again without these columns, or keep the update law.",
            code="prior_of_another_law",
            setting="update_law",
        )
