"""Settings of some panels, which fill in the form. A researcher completes them, and checks them by a test visit."""

from collections.abc import Mapping

# Name of a panel -> setting -> value. Capitals in an address stand for what the researcher has to put in.
PANEL_PRESETS: Mapping[str, Mapping[str, str]] = {
    "CloudResearch Connect": {
        "panel_query": "participantId&assignmentId&projectId",
        "panel_submission": "assignmentId",
    },
    "SONA": {
        "panel_query": "id=%SURVEY_CODE%",
        "return_completed": "https://YOUR-SITE.sona-systems.com/webstudy_credit.aspx?experiment_id=EXPERIMENT"
        "&credit_token=TOKEN&survey_code={id}",
    },
    "Cint": {"panel_query": "rid=[%RID%]"},
    "Qualtrics": {"panel_query": "id=${e://Field/ResponseID}"},
    "Microworkers": {
        "panel_query": "mw_id={{MW_ID}}&campaign_id={{CAMP_ID}}&slot_id={{SLOT_ID}}",
        "panel_submission": "slot_id",
        "return_completed": "mw-{verification_code}",
    },
}
