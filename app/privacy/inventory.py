"""Inventory of all columns: which hold something about an annotator, and what erasure and retention do to it.

SQL expressions here may use the columns of their row and the parameters :campaign, :annotator, :name (such as A7) and
:personal_platform.
"""

from app.designs.remarks import REMARKS_KEY
from app.designs.unjudged import UNJUDGED_CHECKS_KEY, UNJUDGED_KEY
from app.privacy.adjudication_inventory import ADJUDICATIONS_TABLE
from app.privacy.imported_file_inventory import UNFINISHED_IMPORTS_TABLE
from app.privacy.inventory_types import (
    BY_ANNOTATOR,
    ERASED_REASON,
    NAMES_RESEARCHER,
    PersonalTable,
    personal_column,
    random_id_sql,
)
from app.privacy.money_inventory import MONEY_TABLES

HAS_REASON_SQL = "starts_with(action, 'answers.') AND after ? 'reason'"
ONLY_HASH_STORED = "a secret; only its hash is stored"

# The fact that an item could not be judged, or was flagged, stays: it counts. The reason and the comment are erased.
EXTRA_WITHOUT_TEXT_SQL = f"""
    nullif(jsonb_strip_nulls(extra || jsonb_build_object(
        '{UNJUDGED_KEY}', (SELECT jsonb_object_agg(item, CAST('' AS text))
            FROM jsonb_object_keys(extra -> '{UNJUDGED_KEY}') AS unjudged (item)),
        '{UNJUDGED_CHECKS_KEY}', (SELECT jsonb_object_agg(item, CAST('' AS text))
            FROM jsonb_object_keys(extra -> '{UNJUDGED_CHECKS_KEY}') AS unjudged (item)),
        '{REMARKS_KEY}', (SELECT jsonb_object_agg(about, remark - 'comment')
            FROM jsonb_each(extra -> '{REMARKS_KEY}') AS remarks (about, remark) WHERE remark ? 'flag')
    )), '{{}}')"""


# An allow list without rows would let everyone take part, so a row that names no one is left.
PERSON_HASH_AFTER_ERASURE_SQL = """CASE WHEN list = 'allow' AND worker_id IS NOT NULL
    THEN sha256(convert_to(CAST(gen_random_uuid() AS text), 'UTF8')) ELSE person_hash END"""

# In the order in which erasure changes them: a person's link is found by the id that is replaced last.
PERSONAL_TABLES = (
    PersonalTable(
        "participant_lists",
        """campaign_id = :campaign AND worker_id = (
            SELECT coalesce(l.name, a.worker_id) FROM annotators a
            LEFT JOIN personal_links l ON l.campaign_id = a.campaign_id AND CAST(l.number AS text) = a.worker_id
                AND a.platform = :personal_platform
            WHERE a.campaign_id = :campaign AND a.id = :annotator)""",
        (
            personal_column(
                "worker_id",
                "the platform’s id on the lists of people who may take part, or may not, and in groups",
                "identifier",
                anonymised="NULL",
                fate="emptied on the allow and the block list, deleted in groups",
                retention="identifiers",
            ),
            personal_column(
                "person_hash",
                "hash of that id, made with the campaign’s public key; it keeps a block in force",
                "identifier",
                anonymised=PERSON_HASH_AFTER_ERASURE_SQL,
                fate="stays on the block list, replaced by a random one on the allow list, deleted in groups",
                retention="identifiers",
                withheld="it says no more than the id",
            ),
            personal_column("campaign_id list added_at number", "which list, and since when", "technical"),
        ),
        deleted_by_anonymise="list NOT IN ('allow', 'block')",
        retention="identifiers",
    ),
    PersonalTable(
        "personal_links",
        """campaign_id = :campaign AND CAST(number AS text) = (
            SELECT worker_id FROM annotators
            WHERE campaign_id = :campaign AND id = :annotator AND platform = :personal_platform)""",
        (
            personal_column("name", "name or mail address", "identifier", fate="deleted", retention="identifiers"),
            personal_column(
                "link", "secret part of the personal link", "identifier", fate="deleted", retention="identifiers"
            ),
            personal_column("campaign_id number added_at", "place in the list of links", "technical", fate="deleted"),
        ),
        deleted_by_anonymise="true",
        retention="identifiers",
    ),
    PersonalTable(
        "withdrawal_codes",
        BY_ANNOTATOR,
        (
            personal_column(
                "code_hash", "hash of the withdrawal code", "identifier", fate="deleted", withheld=ONLY_HASH_STORED
            ),
            personal_column("campaign_id annotator_id", "whose it is", "technical", fate="deleted"),
        ),
        deleted_by_anonymise="true",
        retention="identifiers",
    ),
    PersonalTable(
        "visits",
        BY_ANNOTATOR,
        (
            personal_column(
                "said",
                "answers to questions about themselves, in practice and in tests",
                "about themselves",
                anonymised="'{}'",
                fate="emptied",
                retention="free_text",
            ),
            personal_column(
                "step version outcome taken_at",
                "which text they agreed to, results of practice and tests, and when",
                "conduct",
                fate="`remove` keeps only the agreement, as proof",
            ),
            personal_column("campaign_id annotator_id", "whose it is", "technical"),
        ),
        deleted_by_remove="step <> 'consent'",
    ),
    PersonalTable(
        "media_reports",
        BY_ANNOTATOR,
        (
            personal_column(
                "item segment reported_at", "media that they could not open", "conduct", fate="`remove` deletes it"
            ),
            personal_column("campaign_id annotator_id", "whose it is", "technical"),
        ),
        deleted_by_remove="true",
    ),
    PersonalTable(
        "check_reports",
        BY_ANNOTATOR,
        (
            personal_column(
                "check_number reported_at",
                "media of checks that they could not open",
                "conduct",
                fate="`remove` deletes it",
            ),
            personal_column("campaign_id annotator_id", "whose it is", "technical"),
        ),
        deleted_by_remove="true",
    ),
    PersonalTable(
        "findings",
        BY_ANNOTATOR,
        (
            personal_column(
                "rule action said found_at",
                "what a quality rule noticed in their answers",
                "conduct",
                fate="`remove` deletes it",
            ),
            personal_column(
                "seen",
                "the numbers of that finding",
                "conduct",
                withheld="they contain the thresholds of quality rules",
            ),
            personal_column("campaign_id id annotator_id", "whose it is", "technical"),
        ),
        deleted_by_remove="true",
    ),
    PersonalTable(
        "check_answers",
        BY_ANNOTATOR,
        (
            personal_column(
                "value changed_to other_values other_changed_to answered_at check_number",
                "answers to gold and attention items",
                "answers",
                fate="`remove` deletes it",
            ),
            personal_column("campaign_id hit_id annotator_id", "whose it is", "technical"),
        ),
        deleted_by_remove="true",
    ),
    PersonalTable(
        "hit_checks",
        """campaign_id = :campaign AND hit_id IN (
            SELECT id FROM hits WHERE campaign_id = :campaign AND annotator_id = :annotator)""",
        (
            personal_column(
                "campaign_id hit_id place check_number number",
                "gold and attention items in their HITs",
                "technical",
                fate="`remove` deletes it",
                withheld="it would tell which items are gold",
            ),
        ),
        deleted_by_remove="true",
    ),
    PersonalTable(
        "hits",
        BY_ANNOTATOR,
        (
            personal_column(
                "draft",
                "what was entered in an unsent HIT",
                "free text",
                anonymised="NULL",
                fate="emptied",
                retention="free_text",
            ),
            personal_column(
                "untouched_by",
                "keyed hash of the network address, until the HIT is touched",
                "identifier",
                anonymised="NULL",
                fate="emptied",
                retention="identifiers",
                withheld=ONLY_HASH_STORED,
            ),
            personal_column(
                "not_applicable",
                "items marked N/A in an imported result file",
                "answers",
                removed="NULL",
                fate="`remove` empties it",
            ),
            personal_column(
                "items segment shown_as issued_at expires_at closed_at", "what they were shown, and when", "technical"
            ),
            personal_column(
                "campaign_id id annotator_id assignment_id leader iteration ordinal drawn_because leader_probability",
                "why it was chosen",
                "technical",
            ),
        ),
    ),
    PersonalTable(
        "responses",
        BY_ANNOTATOR,
        (
            personal_column(
                "values",
                "judgments",
                "answers",
                removed="array_fill(CAST('NaN' AS float8), ARRAY[cardinality(values)])",
                fate="`remove` overwrites it",
            ),
            personal_column(
                "extra",
                "comments, flags and reasons",
                "free text",
                anonymised=EXTRA_WITHOUT_TEXT_SQL,
                removed="NULL",
                fate="`anonymise` keeps which items were flagged or could not be judged; `remove` empties it",
                retention="free_text",
            ),
            personal_column(
                "telemetry",
                "times, input device, changes, size of the window",
                "telemetry",
                anonymised="NULL",
                fate="emptied",
                retention="telemetry",
            ),
            personal_column(
                "items segment source received_at replaces", "what was judged, how it was sent, and when", "technical"
            ),
            personal_column("campaign_id seq hit_id annotator_id transaction_id", "place in the record", "technical"),
        ),
    ),
    PersonalTable(
        "decisions",
        f"""campaign_id = :campaign AND (annotator_id = :annotator OR response_seq IN (
            SELECT seq FROM responses WHERE {BY_ANNOTATOR}))""",
        (
            personal_column(
                "reason",
                "why a researcher or rule excluded answers",
                "free text",
                anonymised=f"'{ERASED_REASON}'",
                fate="overwritten",
                retention="free_text",
            ),
            personal_column("decided_by", "who decided", "technical", withheld=NAMES_RESEARCHER),
            personal_column("kind decided_at", "whether answers count", "conduct"),
            personal_column("campaign_id seq annotator_id response_seq", "place in the record", "technical"),
        ),
    ),
    ADJUDICATIONS_TABLE,
    PersonalTable(
        "states",
        "campaign_id = :campaign AND kind = 'annotator' AND number = :annotator",
        (
            personal_column(
                "state since",
                "what the update law estimates about them, such as bias",
                "conduct",
                fate="`remove` deletes it, with the next revision",
            ),
            personal_column("campaign_id revision criterion kind number layout", "whose it is", "technical"),
        ),
    ),
    PersonalTable(
        "alerts",
        "campaign_id = :campaign AND about = :name",
        (
            personal_column("about because kind raised_at", "alerts that name them, as A7", "conduct"),
            personal_column("seen_at seen_by", "who saw it", "technical", withheld=NAMES_RESEARCHER),
            personal_column("campaign_id id occasion", "place in the list", "technical"),
        ),
    ),
    PersonalTable(
        "audit_log",
        f"campaign_id = :campaign AND about = :name AND {HAS_REASON_SQL}",
        (
            personal_column(
                "after",
                "reasons of decisions about them",
                "free text",
                anonymised=f"""jsonb_set(after, '{{reason}}', '"{ERASED_REASON}"')""",
                fate="the reason is overwritten",
                retention="free_text",
            ),
            personal_column("who way", "who changed it", "technical", withheld=NAMES_RESEARCHER),
            personal_column("noted_at action about", "changes about them, as A7", "conduct"),
            personal_column("id campaign_id campaign before answers", "place in the log", "technical"),
        ),
        about_any_annotator=HAS_REASON_SQL,
    ),
    *MONEY_TABLES,
    PersonalTable(
        "assignments",
        BY_ANNOTATOR,
        (
            personal_column(
                "external_id",
                "the platform’s id of the submission",
                "identifier",
                anonymised=random_id_sql("external_id"),
                fate="replaced by a random one",
                retention="identifiers",
            ),
            personal_column(
                "arrival",
                "the platform’s other parameters",
                "identifier",
                anonymised="'{}'",
                fate="emptied",
                retention="identifiers",
            ),
            personal_column("arrived_at completed_at", "when they came and finished", "technical"),
            personal_column("campaign_id id annotator_id", "whose it is", "technical"),
        ),
    ),
    UNFINISHED_IMPORTS_TABLE,
    PersonalTable(
        "annotators",
        "campaign_id = :campaign AND id = :annotator",
        (
            personal_column(
                "worker_id",
                "the platform’s id of the person",
                "identifier",
                anonymised=random_id_sql("worker_id"),
                fate="replaced by a random one",
                retention="identifiers",
            ),
            personal_column(
                "pseudonym",
                "the name in exports",
                "identifier",
                anonymised="substr(md5(CAST(gen_random_uuid() AS text)), 1, 10)",
                fate="replaced, so that earlier exports cannot be joined",
            ),
            personal_column(
                "barred_reason",
                "why they were held or excluded",
                "free text",
                anonymised=f"""CASE WHEN barred = 'erased' THEN barred_reason
                    WHEN barred IS NOT NULL THEN '{ERASED_REASON}' END""",
                fate="overwritten",
                retention="free_text",
            ),
            personal_column("barred_by", "who decided that", "technical", withheld=NAMES_RESEARCHER),
            personal_column("platform created_at barred barred_at", "where and when they came", "technical"),
            personal_column("campaign_id id admitted", "place in the list", "technical"),
            personal_column("square_row square_row_at square_done", "their list of conditions", "technical"),
        ),
    ),
    PersonalTable(
        "erasures",
        BY_ANNOTATOR,
        (
            personal_column(
                "person_hashes",
                "hashes of former ids: the link and imports refuse the person, and a restored backup erases them again",
                "identifier",
                withheld=ONLY_HASH_STORED,
            ),
            personal_column("requested_by", "who asked for the erasure", "technical", withheld=NAMES_RESEARCHER),
            personal_column(
                "receipt rule requested_at due_at identifiers_erased_at finished_at counts", "receipt", "technical"
            ),
            personal_column("campaign_id id annotator_id", "whose it is", "technical"),
        ),
    ),
)
