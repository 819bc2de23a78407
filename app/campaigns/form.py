"""The settings as a form: which fields belong together, how each is asked, and what is wrong with what was entered."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from pydantic import ValidationError

from app.campaigns.choice_titles import choices_of, is_asked
from app.campaigns.groups import ASKED_BY, CRITERIA, CRITERIA_SHOWN, DESIGN_SETTINGS, GROUPS
from app.campaigns.hints import Hint, RuleOffer, hints_of, offers_of
from app.campaigns.settings import OF_FIELD, OPEN_AFTER_LAUNCH, CampaignSettings
from app.campaigns.together import can_ask, can_follow
from app.designs.criteria import MOST
from app.designs.registry import DESIGNS
from app.designs.registry import USUAL as USUAL_DESIGN
from app.errors import Refusal, plain_message
from app.fields import after_launch
from app.inference.online.laws import ONLINE
from app.selection.registry import RULES

AREAS = ("question",)
KIND_OF_VALUE = re.compile("^(Input|String|List|Tuple|Dictionary) should")  # as Pydantic begins
LONGEST_LINE = 500  # what may be longer is asked in a field of several lines
SWITCHED = {"": "As the campaign", "yes": "Yes", "no": "No"}
SCALE = ("low_label", "middle_label", "high_label", "show_numbers", "tie_margin_points")  # where points are given
OF_ORDERS = ("epsilon", "tie_margin_points")  # where laws read orders
PAIRS = "implied_asked_percent"  # asked where any two items may be compared
OF_CRITERION = ("name", "question", "low_label", "middle_label", "high_label")
EMPTY: tuple[Any, ...] = (None, "", [])
STAND_INS = {"name": "Name", "question": "Your question"}
LONGEST_SEEN = 2_000  # characters of a field in an address
WORDS = {
    "string_too_short": "Please fill this in.",
    "missing": "Please fill this in.",
    "bool_parsing": "Enter yes or no.",
    "int_parsing": "Enter a whole number.",
    "int_parsing_size": "This number is too large.",
    "int_from_float": "Enter a whole number.",
    "float_parsing": "Enter a number.",
    "finite_number": "Enter a number.",
}


@dataclass(frozen=True)
class FormField:
    """One field as it is shown, with `value` in it.

    kind: line, area, lines, whole, number, choice or switch.
    designs, laws: names of those that ask for it, with spaces between them; empty where all do. only_for: the same of
    the designs for some of the choices. hints: what else is said of it, and for whom. offers: what goes with it in
    other fields. of: which criterion it is about, in words; empty where it is about the campaign.
    """

    name: str
    title: str
    description: str
    kind: str
    value: str
    required: bool
    minimum: float | None = None
    maximum: float | None = None
    longest: int | None = None
    choices: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    designs: str = ""
    laws: str = ""
    only_for: Mapping[str, str] = field(default_factory=dict)
    hints: Sequence[Hint] = ()
    offers: Sequence[RuleOffer] = ()
    of: str = ""

    @property
    def full_title(self) -> str:
        """As it is called where it stands alone."""
        return f"{self.of}: {self.title}" if self.of else self.title


@dataclass(frozen=True)
class Section:
    title: str
    plain: Sequence[FormField]
    advanced: Sequence[FormField]
    seen: bool

    @property
    def open(self) -> bool:
        """Whether the folded fields must be seen at once."""
        return any(question.error for question in self.more)

    @property
    def fields(self) -> Sequence[FormField]:
        """All of them."""
        return [*self.plain, *self.advanced]

    @property
    def more(self) -> Sequence[FormField]:
        """The advanced ones about the campaign."""
        return [question for question in self.advanced if not question.of and question.name != CRITERIA_SHOWN]

    @property
    def criteria(self) -> Mapping[str, Sequence[FormField]]:
        """Those about each criterion, by what it is called."""
        by_criterion: dict[str, list[FormField]] = {}
        for question in self.advanced:
            if question.of:
                by_criterion.setdefault(question.of, []).append(question)
        return by_criterion

    @property
    def of_all_criteria(self) -> Sequence[FormField]:
        """Those about all criteria together."""
        return [question for question in self.advanced if question.name == CRITERIA_SHOWN]


def sections(
    values: Mapping[str, str], errors: Mapping[str, str] | None = None, least: Mapping[str, float] | None = None
) -> list[Section]:
    """The whole form with `values` in it and `errors` beside their fields. least: what numbers cannot be below, for
    fields of a campaign that was launched.
    """
    schema = CampaignSettings.model_json_schema()
    properties = schema["properties"]
    asked = {name: [question(name, properties[name], values, errors or {})] for name in properties}
    asked |= {name: [replace(asked[name][0], minimum=value)] for name, value in (least or {}).items()}
    asked[DESIGN_SETTINGS] = of_designs(values, errors or {})
    asked[CRITERIA] = of_criteria(schema["$defs"]["Criterion"]["properties"], values, errors or {})
    return [
        Section(
            group.title,
            [field for name in group.plain if is_asked(name) for field in asked[name]],
            [field for name in group.advanced if is_asked(name) for field in asked[name]],
            group.seen,
        )
        for group in GROUPS
    ]


def least_after_launch(settings: Any) -> dict[str, float]:
    """Return by name what settings of a launched campaign are now that can only grow."""
    fields = CampaignSettings.model_fields.items()
    return {name: getattr(settings, name) for name, field in fields if after_launch(field) == "only more"}


def refused_field(refusal: Refusal) -> dict[str, str]:
    """Return what to say at the field of the setting that a refusal is about; nothing where it is about none."""
    setting, least = refusal.details.get("setting"), refusal.details.get("least")
    if setting is None:
        return {}
    grow = f"It is {least} and can only grow: enter {least} or more."
    return {setting: refusal.message if least is None else grow}


def seen(form: Sequence[Section], design: str) -> str:
    """What annotators see of a form, as the query of the address that shows it to a researcher."""
    fields = [field for section in form if section.seen for field in section.fields]
    mine = [field for field in fields if not field.designs or design in field.designs.split()]
    return urlencode({field.name: field.value[:LONGEST_SEEN] for field in mine if field.value})


def of_designs(values: Mapping[str, str], errors: Mapping[str, str]) -> list[FormField]:
    """What each design asks for itself, in fields that are called `DESIGN.SETTING`."""
    fields = []
    for design in DESIGNS.values():
        for name, schema in design.model_json_schema().get("properties", {}).items():
            field_name = f"{design.name}.{name}"
            before = {field_name: text_of(schema.get("default")), **values}
            fields.append(replace(question(field_name, schema, before, errors), designs=design.name, required=False))
    return fields


def of_criteria(properties: Mapping[str, Any], values: Mapping[str, str], errors: Mapping[str, str]) -> list[FormField]:
    """What may differ for each criterion, in fields that are called `criteria.NUMBER.NAME`, and for the settings of its
    design `criteria.NUMBER.DESIGN.SETTING`. Whoever leaves all fields of one empty has no such criterion.
    """
    return [
        replace(one, of=f"Criterion {number + 1}", required=False)
        for number in range(MOST)
        for one in of_criterion(f"{CRITERIA}.{number}.", properties, values, errors)
    ]


def of_criterion(
    start: str, properties: Mapping[str, Any], values: Mapping[str, str], errors: Mapping[str, str]
) -> Iterator[FormField]:
    for name in OF_CRITERION:
        yield replace(question(start + name, properties[name], values, errors), designs=designs_of(name))
    for one in of_designs({}, {}):
        name = start + one.name
        entered = replace(one, name=name, value=values.get(name, ""), error=errors.get(name))
        # A switch that is off would look like one that nobody set.
        yield replace(entered, kind="choice", choices=SWITCHED) if one.kind == "switch" else entered


def question(name: str, schema: Mapping[str, Any], values: Mapping[str, str], errors: Mapping[str, str]) -> FormField:
    """How one setting is asked, as its JSON schema says."""
    rules = rules_of(schema)
    return FormField(
        name=name,
        title=schema["title"],
        description=schema["description"],
        kind=kind_of(name, rules),
        value=values.get(name, ""),
        required=rules is schema and schema.get("default", ...) not in EMPTY,
        minimum=rules.get("minimum"),
        maximum=rules.get("maximum"),
        longest=rules.get("maxLength"),
        choices=choices_of(name),
        error=errors.get(name),
        designs=designs_of(name),
        laws=laws_of(name),
        only_for=only_for(name),
        hints=hints_of(name, values),
        offers=offers_of(name, values),
    )


def only_for(name: str) -> dict[str, str]:
    """The designs that each choice is for, where some are not for all."""
    if name == "update_law":
        return laws_by_design()
    return rules_by_design() if name == "rule" else {}


def laws_by_design() -> dict[str, str]:
    """The designs that each update law can follow."""
    made = [design() for design in DESIGNS.values()]
    return {name: " ".join(one.name for one in made if can_follow(one, law)) for name, law in ONLINE.items()}


def rules_by_design() -> dict[str, str]:
    """The designs that each rule of selection can ask by, with a law that follows them."""
    laws = laws_by_design()
    designs = {
        name: {design for law, able in laws.items() if can_ask(rule, ONLINE[law]) for design in able.split()}
        for name, rule in RULES.items()
    }
    return {name: " ".join(design for design in DESIGNS if design in able) for name, able in designs.items()}


def designs_of(name: str) -> str:
    """The designs that read a setting, if not all do."""
    if name == PAIRS:
        return " ".join(design.name for design in DESIGNS.values() if design().compares_pairs)
    if name == CRITERIA_SHOWN:
        return " ".join(design.name for design in DESIGNS.values() if design.stands_in_grid)
    if name in SCALE:
        return " ".join(design.name for design in DESIGNS.values() if design.yields == "points")
    if name == "items_per_hit":
        return " ".join(design.name for design in DESIGNS.values() if len(design.items_per_hit) > 1)
    return ""


def laws_of(name: str) -> str:
    """The update laws that read a setting, if not all do."""
    return " ".join(law.name for law in ONLINE.values() if law.reads == "order") if name in OF_ORDERS else ""


def rules_of(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The type and limits of a setting's value; the schema of one that may be none has them a level down."""
    rules: Mapping[str, Any] = schema["anyOf"][0] if "anyOf" in schema else schema
    return rules


def kind_of(name: str, rules: Mapping[str, Any]) -> str:
    if "enum" in rules or name == "open_platforms":
        return "cards" if name == "design" else "choice"
    if name in AREAS or rules.get("maxLength", 0) > LONGEST_LINE:
        return "area"
    if name == "prior":
        return "line"
    return {"boolean": "switch", "integer": "whole", "number": "number", "array": "lines"}.get(rules["type"], "line")


def blank() -> dict[str, str]:
    """What stands in a new campaign's form."""
    fields = CampaignSettings.model_fields.items()
    return {
        name: in_field(name, info.default)
        for name, info in fields
        if not (info.is_required() or name in (DESIGN_SETTINGS, CRITERIA))
    }


def filled(settings: CampaignSettings) -> dict[str, str]:
    """What stands in the form of a campaign that exists."""
    whole = settings.model_dump(exclude={DESIGN_SETTINGS, CRITERIA})
    own = in_fields(settings.design_settings, f"{settings.design}.")
    for number, criterion in enumerate(settings.criteria):
        start = f"{CRITERIA}.{number}."
        said = {name: value for name, value in criterion.items() if name != DESIGN_SETTINGS}
        own |= in_fields(said, start)
        of_design = criterion.get("design_settings", {})
        own |= in_fields({name: switched(value) for name, value in of_design.items()}, f"{start}{settings.design}.")
    return {name: in_field(name, value) for name, value in whole.items()} | own


def in_fields(values: Mapping[str, object], start: str) -> dict[str, str]:
    return {start + name: text_of(value) for name, value in values.items()}


def switched(value: object) -> object:
    """A switch of a criterion, which may be off where the campaign's is on."""
    return ("no", "yes")[value] if isinstance(value, bool) else value


def shown(value: object) -> str:
    """A switch that is off is empty, as in a browser's form."""
    if isinstance(value, bool):
        return "on" if value else ""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def in_field(name: str, value: object) -> str:
    """A setting of the campaign: the numbers of its prior stand on one line."""
    return shown(value) if name == "prior" else text_of(switched(value) if name == "open_platforms" else value)


def text_of(value: object) -> str:
    """What is many stands on lines."""
    return "\n".join(map(str, value)) if isinstance(value, list) else shown(value)


def read(values: Mapping[str, str]) -> CampaignSettings:
    """Settings from a form. Raises Pydantic's ValidationError; `problems` turns it into words."""
    entered = {
        name: value_of(name, values) for name in CampaignSettings.model_fields if is_switch(name) or name in values
    }
    entered[DESIGN_SETTINGS] = design_settings(values)
    entered[CRITERIA] = [said for said in criteria(values) if said]
    if not entered[CRITERIA]:
        entered.pop(ASKED_BY, None)
    if values.get("design", USUAL_DESIGN) not in designs_of(PAIRS).split():
        entered.pop(PAIRS, None)  # it stands in the form for another way of asking
    return CampaignSettings.model_validate(entered)


def criteria(values: Mapping[str, str]) -> list[dict[str, object]]:
    """Of each place for a criterion what stands in its fields; nothing where these are empty."""
    found = []
    for start in (f"{CRITERIA}.{number}." for number in range(MOST)):
        own: dict[str, object] = {name: text for name in OF_CRITERION if (text := values.get(start + name, "").strip())}
        of_design = design_settings(values, start)
        found.append(own | ({DESIGN_SETTINGS: of_design} if of_design else {}))
    return found


def design_settings(values: Mapping[str, str], start: str = "") -> dict[str, object]:
    """Those of the chosen design, from their fields; what stands empty is left to the design.

    start: with what the names of the fields begin that are of one criterion, which may leave switches to the campaign.
    """
    design = DESIGNS.get(values.get("design", USUAL_DESIGN))
    properties = design.model_json_schema().get("properties", {}) if design else {}
    found: dict[str, object] = {}
    for name, schema in properties.items():
        field_name, kind = f"{start}{values.get('design', USUAL_DESIGN)}.{name}", kind_of(name, rules_of(schema))
        raw = values.get(field_name, "").strip()
        if kind == "switch" and not start:
            found[name] = field_name in values
        elif kind == "lines" and raw:
            found[name] = [line.strip() for line in raw.splitlines() if line.strip()]
        elif raw:
            found[name] = raw
    return found


def read_leniently(values: Mapping[str, str]) -> CampaignSettings:
    """The same of a form that is being filled in: what is wrong or missing so far is as in a new campaign."""
    given = STAND_INS | {name: value for name, value in values.items() if value.strip() or name not in STAND_INS}
    for _ in range(4):  # what is wrong with fields together is found once each is right
        try:
            return read(given)
        except ValidationError as error:
            wrong = problems_in_form(error, given)
            if any(name.startswith(f"{CRITERIA}.") for name in wrong):  # what is left of one would be wrong, too
                wrong |= {name: "" for name in given if name.startswith(f"{CRITERIA}.")}
            given = {name: value for name, value in given.items() if name not in wrong}
            given = STAND_INS | given
    return CampaignSettings.model_validate(STAND_INS)


def read_over(settings: CampaignSettings, values: Mapping[str, str]) -> CampaignSettings:
    """Settings with those that a launch leaves open from a form that asks for no others. Raises what `read` raises."""
    asked = {name for name in OPEN_AFTER_LAUNCH if is_switch(name)}  # one that is off stands in no form
    kept = {name: value for name, value in filled(settings).items() if value and name not in asked}
    return read({**kept, **values})


def value_of(name: str, values: Mapping[str, str]) -> object:
    """A browser leaves a switch out that is off, and an empty field means none where none is possible."""
    if is_switch(name):
        return name in values
    optional = CampaignSettings.model_fields[name].default is None
    return values[name].strip() or (None if optional else "")


def is_switch(name: str) -> bool:
    return CampaignSettings.model_fields[name].annotation is bool


def together(problem: Mapping[str, Any]) -> tuple[str]:
    """The field at which is said what is wrong with settings together."""
    return (str(problem.get("ctx", {}).get("field", "prior")) if problem["type"] == OF_FIELD else "prior",)


def problems(error: ValidationError) -> dict[str, str]:
    """A message for each field that is wrong; what is wrong with fields together is said at the first of them."""
    found = {}
    for problem in reversed(error.errors(include_url=False, include_input=False)):
        found[str((problem["loc"] or together(problem))[0])] = in_words(problem["type"], problem["msg"])
    return found


def problems_in_form(error: ValidationError, values: Mapping[str, str]) -> dict[str, str]:
    """The same, where what is wrong with a design's own settings is said at their fields."""
    found, design = problems(error), values.get("design", USUAL_DESIGN)
    for problem in error.errors(include_url=False, include_input=False):
        if problem["loc"] == (DESIGN_SETTINGS,):
            del found[DESIGN_SETTINGS]
            own = problem.get("ctx", {}).get("problems", {})
            found |= {f"{design}.{name.partition('.')[0]}": in_words("", words) for name, words in own.items()}
        elif problem["loc"][:1] == (CRITERIA,):
            found.pop(CRITERIA, None)
            found[field_of_criterion(problem, values)] = in_words(problem["type"], problem["msg"])
    return found


def field_of_criterion(problem: Mapping[str, Any], values: Mapping[str, str]) -> str:
    """The field in which something is wrong; the first one if it is wrong with all criteria together."""
    told = problem.get("ctx", {})
    place = told.get("number", 0), told.get("field", "name")
    number, name, *_ = (*problem["loc"][1:], "name") if problem["loc"][1:] else place
    asked = [place for place, said in enumerate(criteria(values)) if said] or [0]
    own = str(name).replace(DESIGN_SETTINGS, values.get("design", USUAL_DESIGN))
    return f"{CRITERIA}.{asked[number]}.{own}"


def in_words(kind: str, message: str) -> str:
    plain = KIND_OF_VALUE.sub("This should", plain_message(message)).replace(" after validation", "")
    return WORDS.get(kind, plain[0].upper() + plain[1:] + "." * (not plain.endswith(".")))
