"""Settings of some panels, which fill in the form. A researcher completes them, and checks them by a test visit."""

from collections.abc import Mapping

CINT_CALLBACK = "https://samplicio.us/s/ClientCallBack.aspx?RIS={status}&RID={{rid}}"

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
    "SONA by a call": {
        "panel_title": "SONA",
        "panel_query": "id=%SURVEY_CODE%",
        "call_completed": "https://YOUR-SITE.sona-systems.com/services/SonaAPI.svc/WebstudyCredit"
        "?experiment_id=EXPERIMENT&credit_token=TOKEN&survey_code={id}",
        "call_confirmation": "credit_status>G<",
    },
    "Cint": {
        "panel_query": "rid=[%RID%]",
        "return_completed": CINT_CALLBACK.format(status=10),
        "return_failed_checks": CINT_CALLBACK.format(status=30),
        "return_screened_out": CINT_CALLBACK.format(status=20),
        "return_quota_full": CINT_CALLBACK.format(status=40),
        "return_nothing_left": CINT_CALLBACK.format(status=40),
    },
    "Besample": {"panel_query": "response_id"},
    "Qualtrics": {"panel_query": "id=${e://Field/ResponseID}"},
    "Microworkers": {
        "panel_query": "mw_id={{MW_ID}}&campaign_id={{CAMP_ID}}&slot_id={{SLOT_ID}}",
        "panel_submission": "slot_id",
        "return_completed": "mw-{verification_code}",
    },
}
