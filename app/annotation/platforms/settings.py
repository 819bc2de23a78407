"""Settings of a campaign for working time, pay, and the way back to the platform."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, ValidationInfo, field_validator

from app.annotation.platforms.return_templates import (
    PERSON_PLACEHOLDER,
    VERIFICATION_PLACEHOLDER,
    note_on_unused_form_origins_or_empty,
    parameter_names_of_query,
    placeholders_of_template,
    refuse_address_without_form_fields,
    refuse_unknown_placeholders,
    validate_query_with_placeholders,
)
from app.designs.campaign import Campaign, PeopleFrom
from app.designs.field_flags import EDITABLE, PRIVATE, InputModel, OneLine
from app.text.ports import PORT_PATTERN


def value_or_raise_for_yes_or_no(value: Any) -> Any:
    """Return a value as it is. Raises ValueError for true and false, which Python counts as 1 and 0."""
    if value is True or value is False:
        raise ValueError("enter an amount such as 0.25, not yes or no")
    return value


Minutes = Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)]
PayAmount = Annotated[float, BeforeValidator(value_or_raise_for_yes_or_no), Field(gt=0, le=10_000, allow_inf_nan=False)]
PayText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]
COMPLETION_CODE_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}")
COMPLETION_CODE_MESSAGE = "only letters, digits, _ and - can be in this code, 64 at most"
# Braces enclose a placeholder, which a panel fills in.
CODE_TEMPLATE_PATTERN = re.compile(r"(?=.{1,200}$)[A-Za-z0-9_-]*(\{[A-Za-z][A-Za-z0-9_]*\}[A-Za-z0-9_-]*)*")
# A host with an optional wildcard for its first part, and an optional port.
FRAME_ORIGIN_PATTERN = re.compile(
    rf"https://(\*\.)?([A-Za-z0-9-]{{1,63}}\.){{1,10}}[A-Za-z0-9-]{{2,63}}(:{PORT_PATTERN})?"
)
RETURN_URL_PATTERN = re.compile(r"https://[^\s\"'<>\\]{1,500}")
# A host of letters, digits and dots, or an IPv6 address, with an optional port, before the path. Browsers skip further
# slashes, so that a path would be read as a host.
RETURN_HOST_PATTERN = re.compile(rf"https://([^\W_]([\w.-]{{0,252}}\w)?|\[[0-9A-Fa-f:.]+\])(:{PORT_PATTERN})?([/?#]|$)")
# Capitals of a preset that stand for what the researcher has to put in.
UNFINISHED_PRESET_PATTERN = re.compile(r"//YOUR-SITE\.|=EXPERIMENT\b|=TOKEN\b")
Currency = Literal["USD", "EUR", "GBP", "JPY", "CNY", "CAD", "AUD", "CHF", "INR", "BRL", "MXN", "SEK", "PLN", "CZK"]


def validate_completion_code(code: str) -> str:
    if not COMPLETION_CODE_PATTERN.fullmatch(code):
        raise ValueError(COMPLETION_CODE_MESSAGE)
    return code


CompletionCode = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(validate_completion_code)]


def validate_code_or_url(code_or_url: str) -> str:
    code_pattern = CODE_TEMPLATE_PATTERN if "{" in code_or_url else COMPLETION_CODE_PATTERN
    if code_pattern.fullmatch(code_or_url):
        return code_or_url
    if RETURN_URL_PATTERN.fullmatch(code_or_url):
        if RETURN_HOST_PATTERN.match(code_or_url) is None:
            raise ValueError("this address has no usable host; begin it as in https://example.org/")
        return code_or_url
    raise ValueError("enter a code of letters, digits, _ and -, or an address that begins with https://")


ReturnCodeOrUrl = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(validate_code_or_url)]


def validate_frame_origin(origin: str) -> str:
    """Return an origin such as `https://survey.example` without a path."""
    origin = origin.removesuffix("/")
    if not FRAME_ORIGIN_PATTERN.fullmatch(origin):
        raise ValueError("enter the beginning of an address, such as https://survey.example, without a path")
    return origin.lower()


def validate_form_origin(origin: str) -> str:
    """Return an origin such as `https://panel.example` that a page may post to: one host, without a path."""
    if "*" in origin:
        raise ValueError("name the host in full: outcomes are posted to no other")
    return validate_frame_origin(origin)


FormOrigin = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(validate_form_origin)]
FrameOrigin = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(validate_frame_origin)]


CALL_ADDRESS_PATTERN = re.compile(r"https?://[^\s\"'<>\\]{1,500}")
CALL_HEADER_PATTERN = re.compile(r"([A-Za-z0-9-]{1,100}): ?([!-~]([ -~]{0,998}[!-~])?)")
# Headers that the connection sets itself.
OWN_CALL_HEADERS = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "te", "accept-encoding"}
    | {"expect", "trailer", "upgrade"}
)


def validate_call_address(address: str) -> str:
    """Return an address that Easel's server may call: with a plain host, and without a name or password."""
    if not CALL_ADDRESS_PATTERN.fullmatch(address):
        raise ValueError("enter an address that begins with https://")
    if RETURN_HOST_PATTERN.match(address.replace("http://", "https://", 1)) is None:
        raise ValueError("this address has no usable host; begin it as in https://example.org/")
    return address


def validate_call_header(header: str) -> str:
    """Return a header as `Name: value`."""
    match = CALL_HEADER_PATTERN.fullmatch(header)
    if match is None:
        raise ValueError("write one header per line, such as Authorization: Bearer 0a1b2c")
    if match[1].lower() in OWN_CALL_HEADERS:
        raise ValueError(f"Easel sets the header {match[1]} itself")
    return f"{match[1]}: {match[2]}"


CallAddress = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(validate_call_address)]
CallHeader = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(validate_call_header)]


class CrowdSettings(InputModel):
    """Settings of a campaign for annotators' work."""

    people_from: PeopleFrom = Field(
        default=Campaign.people_from, title="Where do people come from?", json_schema_extra=EDITABLE,
        description="This step and the launch page show what this way needs. It lets no one in and keeps no one out.",
    )  # fmt: skip
    minutes_per_hit: Minutes | None = Field(
        default=None, title="Minutes per task", json_schema_extra=EDITABLE,
        description="How long one task takes. Shown to annotators.",
    )  # fmt: skip
    pay: PayText | None = Field(
        default=None, title="Pay in your own words", json_schema_extra=EDITABLE,
        description="Shown to annotators instead of the amount, for example: course credit.",
    )  # fmt: skip
    pay_per_hit: PayAmount | None = Field(
        default=None, title="Pay per task", json_schema_extra=EDITABLE,
        description="Shown to annotators, with what they have earned so far.",
    )  # fmt: skip
    currency: Currency = Field(
        default="USD", title="Currency", json_schema_extra=EDITABLE, description="Currency of the pay."
    )
    in_short: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200), OneLine] = Field(
        default="", title="Short instructions", json_schema_extra=EDITABLE,
        description="The instructions in one line, shown above every task.",
    )  # fmt: skip
    leave_early: bool = Field(
        default=False, title="People may leave early", json_schema_extra=EDITABLE,
        description="Let people finish after any task, even before their limit.",
    )  # fmt: skip
    undo: bool = Field(
        default=True, title="People may change their last answers", json_schema_extra=EDITABLE,
        description="Let people change an answer until they submit the next task. Both versions are kept.",
    )  # fmt: skip
    break_minutes: Annotated[int, Field(ge=5, le=240)] | None = Field(
        default=None, title="Suggest a break (minutes)", json_schema_extra=EDITABLE,
        description="Suggest a break after this many minutes.",
    )  # fmt: skip
    prolific_completion_code: CompletionCode | None = Field(
        default=Campaign.prolific_completion_code, title="Prolific completion code", json_schema_extra=EDITABLE,
        description="From your study’s page on Prolific. People return with it when they are done.",
    )  # fmt: skip
    panel_title: Annotated[str, StringConstraints(strip_whitespace=True, max_length=60), OneLine] = Field(
        default=Campaign.panel_title, title="Platform name", json_schema_extra=EDITABLE,
        description="Name of another platform that people come from, for example: SONA.",
    )  # fmt: skip
    panel_query: Annotated[
        str, StringConstraints(strip_whitespace=True), AfterValidator(validate_query_with_placeholders)
    ] = Field(
        default=Campaign.panel_query, title="Link parameters", json_schema_extra=EDITABLE,
        description="Parameters with the platform’s placeholders, for example: participant={{participant}}. The first "
        "one identifies the person.",
    )  # fmt: skip
    panel_submission: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] | None = Field(
        default=Campaign.panel_submission, title="Submission parameter",
        json_schema_extra=EDITABLE,
        description="Parameter with a new value for each visit, if there is one. You use this value to pay people.",
    )  # fmt: skip
    panel_key: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200), OneLine] = Field(
        default=Campaign.panel_key, title="Key of verification codes",
        json_schema_extra=EDITABLE | PRIVATE,
        description="Secret that Easel uses to compute {verification_code} in completion codes.",
    )  # fmt: skip
    frame_origins: Annotated[list[FrameOrigin], Field(max_length=10)] = Field(
        default=[], title="Sites that may show the task in a frame", json_schema_extra=EDITABLE,
        description="One per line, for example: https://survey.example. If empty, no site may.",
    )  # fmt: skip
    form_origins: Annotated[list[FormOrigin], Field(max_length=10)] = Field(
        default=[], title="Sites that take outcomes as a form", json_schema_extra=EDITABLE,
        description="One per line, for example: https://panel.example. If an outcome’s address is on "
        "such a site, its parameters are posted there as a form.",
    )  # fmt: skip
    return_completed: ReturnCodeOrUrl | None = Field(
        default=Campaign.return_completed, title="Completion code", json_schema_extra=EDITABLE,
        description="Code or https:// address for people who have finished.",
    )  # fmt: skip
    return_failed_checks: ReturnCodeOrUrl | None = Field(
        default=Campaign.return_failed_checks, title="Code for failed checks", json_schema_extra=EDITABLE,
        description="Code or https:// address for people stopped by quality checks.",
    )  # fmt: skip
    return_screened_out: ReturnCodeOrUrl | None = Field(
        default=Campaign.return_screened_out, title="Code for people screened out", json_schema_extra=EDITABLE,
        description="Code or https:// address for people who did not qualify.",
    )  # fmt: skip
    return_quota_full: ReturnCodeOrUrl | None = Field(
        default=Campaign.return_quota_full, title="Code if a quota is full", json_schema_extra=EDITABLE,
        description="Code or https:// address for people whose quota is full. Empty: as for people screened out.",
    )  # fmt: skip
    return_nothing_left: ReturnCodeOrUrl | None = Field(
        default=Campaign.return_nothing_left, title="Code if no work is left", json_schema_extra=EDITABLE,
        description="Code or https:// address for people who arrive when all tasks are done.",
    )  # fmt: skip

    call_completed: CallAddress | None = Field(
        default=Campaign.call_completed, title="Call for people who have finished",
        json_schema_extra=EDITABLE | PRIVATE,
        description="Address that Easel’s server calls once for each person who has finished, to give them credit.",
    )  # fmt: skip
    call_failed_checks: CallAddress | None = Field(
        default=Campaign.call_failed_checks, title="Call for failed checks", json_schema_extra=EDITABLE | PRIVATE,
        description="The same for people stopped by quality checks.",
    )  # fmt: skip
    call_screened_out: CallAddress | None = Field(
        default=Campaign.call_screened_out, title="Call for people screened out", json_schema_extra=EDITABLE | PRIVATE,
        description="The same for people who did not qualify.",
    )  # fmt: skip
    call_quota_full: CallAddress | None = Field(
        default=Campaign.call_quota_full, title="Call if a quota is full", json_schema_extra=EDITABLE | PRIVATE,
        description="The same for people whose quota is full. Empty: as for people screened out.",
    )  # fmt: skip
    call_nothing_left: CallAddress | None = Field(
        default=Campaign.call_nothing_left, title="Call if no work is left", json_schema_extra=EDITABLE | PRIVATE,
        description="The same for people who arrive when all tasks are done.",
    )  # fmt: skip
    call_method: Literal["GET", "POST"] = Field(
        default="GET", title="How Easel calls", json_schema_extra=EDITABLE,
        description="GET, or POST with the parameters of the address as a form.",
    )  # fmt: skip
    call_headers: Annotated[list[CallHeader], Field(max_length=10)] = Field(
        default=[], title="Headers of the calls", json_schema_extra=EDITABLE | PRIVATE,
        description="One per line, for example: Authorization: Bearer 0a1b2c.",
    )  # fmt: skip
    call_confirmation: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200), OneLine] = Field(
        default=Campaign.call_confirmation, title="Text in the reply to a call that counted",
        json_schema_extra=EDITABLE,
        description="A reply without it means that the platform did not count the call. Empty: the status decides.",
    )  # fmt: skip
    call_repeatable: bool = Field(
        default=False, title="The platform counts a repeated call only once", json_schema_extra=EDITABLE,
        description="Easel then repeats calls whose reply is missing. Otherwise, you decide about each of them.",
    )  # fmt: skip

    @field_validator("frame_origins", "form_origins", "call_headers", mode="before")
    @classmethod
    def split_lines(cls, lines: object) -> object:
        """Split a text into lines, as forms and the command line send it."""
        return [line for line in lines.splitlines() if line.strip()] if isinstance(lines, str) else lines

    @field_validator("call_headers")
    @classmethod
    def require_different_headers(cls, headers: list[str]) -> list[str]:
        names = [header.partition(":")[0].lower() for header in headers]
        if len({*names}) < len(names):
            raise ValueError("give each header once")
        return headers

    @field_validator("panel_query")
    @classmethod
    def require_panel_title(cls, query: str, info: ValidationInfo) -> str:
        if query and not info.data.get("panel_title"):
            raise ValueError("give the platform a name, too: people read it")
        return query

    @field_validator("panel_submission")
    @classmethod
    def validate_panel_submission(cls, name: str | None, info: ValidationInfo) -> str | None:
        if name is not None and name not in (names := parameter_names_of_query(info.data.get("panel_query", ""))):
            raise ValueError(f"this is not a parameter of the link; its parameters are {', '.join(names) or 'not set'}")
        return name

    @field_validator("form_origins")
    @classmethod
    def require_panel_for_forms(cls, origins: list[str], info: ValidationInfo) -> list[str]:
        if origins and not info.data.get("panel_query"):
            raise ValueError("only people of another platform return by a form: describe its link, too")
        return origins

    @field_validator(
        "return_completed", "return_failed_checks", "return_screened_out", "return_quota_full", "return_nothing_left"
    )
    @classmethod
    def validate_placeholders(cls, template: str | None, info: ValidationInfo) -> str | None:
        """Check that the link has what a template needs. Without a panel, braces in an address are no placeholders."""
        query: str = info.data.get("panel_query", "")
        if template is None:
            return template
        if UNFINISHED_PRESET_PATTERN.search(template):
            raise ValueError("put your own values in the places of YOUR-SITE, EXPERIMENT and TOKEN")
        if not query and template.startswith("https://") and f"{{{PERSON_PLACEHOLDER}}}" not in template:
            return template
        names = [*dict.fromkeys([PERSON_PLACEHOLDER, *parameter_names_of_query(query)])] if query else []
        if query and info.data.get("panel_key"):
            names.append(VERIFICATION_PLACEHOLDER)
        if VERIFICATION_PLACEHOLDER in placeholders_of_template(template) and VERIFICATION_PLACEHOLDER not in names:
            raise ValueError("verification codes need the end of the platform’s link, and a key")
        refuse_unknown_placeholders(template, names)
        refuse_address_without_form_fields(template, info.data.get("form_origins", ()))
        return template

    @field_validator(
        "call_completed", "call_failed_checks", "call_screened_out", "call_quota_full", "call_nothing_left"
    )
    @classmethod
    def validate_placeholders_of_call(cls, address: str | None, info: ValidationInfo) -> str | None:
        """Check that an address names the person: a call without an id would credit nobody."""
        if address is None:
            return address
        if not (query := info.data.get("panel_query", "")):
            raise ValueError("only the server of another platform is called: describe its link, too")
        if UNFINISHED_PRESET_PATTERN.search(address):
            raise ValueError("put your own values in the places of YOUR-SITE, EXPERIMENT and TOKEN")
        names = [*dict.fromkeys([PERSON_PLACEHOLDER, *parameter_names_of_query(query)])]
        if info.data.get("panel_key"):
            names.append(VERIFICATION_PLACEHOLDER)
        refuse_unknown_placeholders(address, names)
        if not placeholders_of_template(address):
            raise ValueError("the address must name the person, such as by {id}")
        return address


RETURN_SETTING_NAMES = [
    name for name in CrowdSettings.model_fields if name.startswith("return_") or name.endswith("_code")
]
PANEL_SETTING_NAMES = (
    *("panel_title", "panel_query", "panel_submission", "panel_key", "frame_origins", "form_origins"),
)
CALL_SETTING_NAMES = tuple(name for name in CrowdSettings.model_fields if name.startswith("call_"))


def note_on_form_origins_of_campaign_or_empty(campaign: Campaign) -> str:
    """Return a sentence on sites that should take outcomes as a form and get none; empty if each gets one."""
    templates = [template for name in RETURN_SETTING_NAMES if (template := getattr(campaign, name, None))]
    return note_on_unused_form_origins_or_empty(campaign.form_origins, templates)


def crowd_setting_by_name_with_slug_of_campaign(campaign: Campaign) -> dict[str, Any]:
    """Return the settings of a campaign that its platforms read, by name, and its `slug`."""
    columns = campaign.column_values_of_campaign()
    return {name: columns[name] for name in CrowdSettings.model_fields} | {"slug": campaign.slug}
