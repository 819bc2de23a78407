"""A consent text made from a campaign's settings, and what is missing in the text or contradicts the settings."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Self

from babel.numbers import get_currency_symbol

from app.annotation.platforms.platform import Platform
from app.annotation.platforms.registry import PLATFORM_BY_PEOPLE_FROM
from app.designs.campaign import Campaign
from app.designs.number_parsing import parse_strict_decimal
from app.designs.person_work import PersonWork, work_of_one_person
from app.errors import join_with_and, pluralize
from app.http.languages.catalogue import BROWSER_LANGUAGE, ENGLISH, LANGUAGES, format_money
from app.privacy.named_periods import days_not_named, find_named_periods
from app.privacy.settings import MAX_RETENTION_DAYS

BLANK_PATTERN = re.compile(r"\[[^\]\n]{1,80}\](?!\()")  # a blank of the template, but no link
PAY_LINE_PATTERN = re.compile(r"^- \*\*Pay:\*\* (.+)\.$", re.MULTILINE)  # of a text made by `draft_consent_text`
THOUSANDS_PATTERN = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
NUMBER_OR_WORD_PATTERN = re.compile(rf"({THOUSANDS_PATTERN.pattern}|[0-9]*[.,]?[0-9]+)|([^\W\d_]+|[^\w\s.,;:])")
STORED_ID_OF_ANY_WAY = "your id on the platform you came from, or the name of your link"
UNKNOWN = "[{}]"
NO_FIXED_END = "no fixed end"
LAST_SENTENCE = "By agreeing, you say that you have read this text and want to take part."
STORED_PHRASE = "your answers; when and how you gave them; your comments and your answers to questions about you; and "


@dataclass(frozen=True)
class EnteredWork:
    """Limit, time and pay of tasks in a form that is being filled in."""

    hits_per_annotator: int | None
    segment_count: int
    repeat_items: bool
    minutes_per_hit: float | None
    recruiting_minutes: int | None
    pay_per_hit: float | None


@dataclass(frozen=True)
class StudyFacts:
    """Facts of a study for its consent text; an empty text is unknown, and None for days means for ever."""

    controller: str
    contact: str
    purpose: str
    ethics_approval: str
    time: str
    pay: str
    stored_id: str
    is_self_withdrawal: bool
    identifiers_days: int | None
    free_text_days: int | None
    telemetry_days: int | None
    everything_days: int | None

    @classmethod
    def from_campaign(cls, campaign: Campaign) -> Self:
        work = work_of_one_person(campaign, PLATFORM_BY_PEOPLE_FROM[campaign.people_from])
        return cls(
            campaign.study_controller,
            campaign.study_contact,
            campaign.study_purpose,
            campaign.ethics_approval,
            time_text_or_empty(work),
            campaign.pay or pay_text_or_empty(work, campaign.currency),
            text_of_stored_id(PLATFORM_BY_PEOPLE_FROM[campaign.people_from], is_link_open=campaign.open_link),
            campaign.withdrawal == "self",
            campaign.identifiers_days,
            campaign.free_text_days,
            campaign.telemetry_days,
            campaign.everything_days,
        )

    @classmethod
    def from_study_form(cls, form: Mapping[str, str], segment_count: int = 0) -> Self:
        """Return the facts of a form that is being filled in. What the settings would refuse counts as empty.

        `segment_count` is the number of segments of a campaign about systems.
        """
        value = {name: text.strip() for name, text in form.items()}.get
        tasks, minutes, study_minutes, pay = (
            amount_of_text_or_none(value(name, ""))
            for name in ("hits_per_annotator", "minutes_per_hit", "recruiting_minutes", "pay_per_hit")
        )
        entered_work = EnteredWork(
            int(tasks) if tasks else None,
            segment_count,
            "repeat_items" in form,
            minutes,
            int(study_minutes) if study_minutes else None,
            pay,
        )
        people_from = value("people_from", Campaign.people_from)
        platform = PLATFORM_BY_PEOPLE_FROM.get(people_from, PLATFORM_BY_PEOPLE_FROM[Campaign.people_from])
        work = work_of_one_person(entered_work, platform)
        return cls(
            value("study_controller", ""),
            value("study_contact", ""),
            value("study_purpose", ""),
            value("ethics_approval", ""),
            time_text_or_empty(work),
            value("pay") or pay_text_or_empty(work, value("currency", "")),
            text_of_stored_id(platform, is_link_open="open_link" in form),
            value("withdrawal") == "self",
            *(
                days_of_text_or_none(value(f"{period}_days", ""))
                for period in ("identifiers", "free_text", "telemetry", "everything")
            ),
        )


def text_of_stored_id(platform: Platform, *, is_link_open: bool) -> str:
    """Return which id of a person is stored: that of the only platform, if people can come in no other way."""
    is_only_way = platform.has_return_page and not platform.set_up_by_campaign and not is_link_open
    return f"your id on {platform.title}" if is_only_way else STORED_ID_OF_ANY_WAY


def days_of_text_or_none(text: str) -> int | None:
    """Return a number of days that a setting can have; None for any other text."""
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_RETENTION_DAYS))
    return int(text) if is_number and 1 <= int(text) <= MAX_RETENTION_DAYS else None


def amount_of_text_or_none(text: str) -> float | None:
    """Return a number above 0; None for any other text."""
    try:
        number = parse_strict_decimal(text)
    except ValueError:
        return None
    return number if 0 < number < inf else None


def time_text_or_empty(work: PersonWork) -> str:
    """Return the time of one person, such as "10 minutes", else of a task, such as "40 seconds a task"."""
    if work.minutes_in_all:
        return pluralize(work.minutes_in_all, "minute")
    if work.seconds_of_short_task:
        return f"{work.seconds_of_short_task} seconds a task"
    minutes = round(work.minutes_of_task or 0.0, 1)
    return f"{minutes:g} minute{'' if minutes == 1 else 's'} a task" if minutes else ""


def pay_text_or_empty(work: PersonWork, currency: str) -> str:
    """Return the pay of one person, such as "£1.50 in all", else of a task, such as "£0.125 a task"."""
    amount, unit = (work.pay_in_all, "in all") if work.pay_in_all else (work.pay_of_task, "a task")
    return f"{format_money(amount, currency, ENGLISH, exact=True)} {unit}" if amount else ""


def draft_consent_text(facts: StudyFacts, max_days: int | None = None) -> str:
    """Return a consent text in Markdown. What is unknown is a blank in square brackets.

    `max_days` is the server's limit for ids, free text and telemetry.
    """
    contact = facts.contact or UNKNOWN.format("name and address")
    ethics = [f"- **Ethics approval:** {facts.ethics_approval}."] if facts.ethics_approval else []
    controller = facts.controller or UNKNOWN.format("institution")
    return "\n".join(
        [
            "## About this study",
            "",
            f"This study is run by {controller}. {sentence_on_purpose(facts.purpose)}",
            "",
            f"- **Time:** about {facts.time or UNKNOWN.format('number') + ' minutes'}.",
            f"- **Pay:** {facts.pay or UNKNOWN.format('amount')}.",
            *ethics,
            f"- **What is stored:** {STORED_PHRASE}{facts.stored_id}.",
            f"- **How long:** {storage_sentences(facts, max_days)}",
            "- **Taking part is voluntary.** You may stop at any time, without giving a reason.",
            f"- **Withdrawal:** {withdrawal_sentences(facts, contact)}",
            "",
            f"If you have questions, or want to see or correct what is stored about you, write to {contact}.",
            "",
            LAST_SENTENCE,
        ]
    )


def sentence_on_purpose(purpose: str) -> str:
    """Return what the answers are used for, as a sentence: the purpose may be a question, a verb or a noun."""
    purpose = purpose.strip().rstrip(".?") or UNKNOWN.format("what you want to find out")
    first_word = purpose.split()[0].lower()
    if first_word == "to":
        return f"We use your answers t{purpose[1:]}."
    if first_word in ("how", "what", "which", "whether", "why", "who", "when", "where", "[what"):
        return f"We want to find out {purpose[0].lower()}{purpose[1:]}."
    return f"We use your answers for {purpose}."


def storage_sentences(facts: StudyFacts, max_days: int | None) -> str:
    """Return how long each kind of data is kept, in sentences."""
    days_by_kind = {
        "ids and names": smaller_day_count_or_none(facts.identifiers_days, max_days),
        "comments and answers to questions about you": smaller_day_count_or_none(facts.free_text_days, max_days),
        "how you answered (times, device)": smaller_day_count_or_none(facts.telemetry_days, max_days),
    }
    kinds = [f"{kind}: {days} days after the study ends" for kind, days in days_by_kind.items() if days is not None]
    endless = [kind for kind, days in days_by_kind.items() if days is None]
    if endless:
        kinds.append(f"{join_with_and(endless)}: {NO_FIXED_END}")
    answers = (
        "Your answers are kept without your name, for research."
        if facts.everything_days is None
        else f"All answers are deleted {facts.everything_days} days after the study ends."
    )
    return f"{'; '.join(kinds)}. {answers}"


def smaller_day_count_or_none(days: int | None, max_days: int | None) -> int | None:
    return min((limit for limit in (days, max_days) if limit is not None), default=None)


def withdrawal_sentences(facts: StudyFacts, contact: str) -> str:
    or_id = "" if facts.stored_id == STORED_ID_OF_ANY_WAY else f", or {facts.stored_id}"  # for those who left before
    by_letter = f"Write to {contact} and give the code from the last page{or_id}; then your answers are removed."
    if facts.is_self_withdrawal:
        return (
            "On the last page you can have your answers removed. You can take that back for 24 hours. Later, "
            f"{by_letter[0].lower()}{by_letter[1:]}"
        )
    return by_letter


def consent_warnings(campaign: Campaign, max_days: int | None = None) -> list[str]:
    """Return sentences on what the consent text lacks, or says differently from the settings; empty if all is well.

    A campaign without a consent text and without anything about people in its settings gets no warnings.
    """
    facts, consent = StudyFacts.from_campaign(campaign), campaign.consent
    named = {
        "who is responsible": facts.controller,
        "whom to write to": facts.contact,
        "the purpose": facts.purpose,
    }
    if not consent:
        return ["People are asked about themselves, but there is no consent text."] if campaign.questions else []
    missing = [what for what, value in named.items() if not value]
    warnings = [f"The settings do not say {join_with_and(missing)}."] if missing else []
    if blanks := list(dict.fromkeys(BLANK_PATTERN.findall(consent))):
        warnings.append(f"The consent text still has blanks: {', '.join(blanks[:5])}.")
    warnings += [
        f"The consent text does not contain the {what} of the settings: {value}."
        for what, value in {"contact": facts.contact, "ethics approval": facts.ethics_approval}.items()
        if value and value not in consent
    ]
    pay_line = PAY_LINE_PATTERN.search(consent)
    if (
        facts.pay
        and pay_line
        and not does_line_state_pay(pay_line[1], campaign)
        and not BLANK_PATTERN.search(pay_line[1])
    ):
        warnings.append(
            f"The consent text says “{pay_line[1]}”, but the settings pay {facts.pay}. Write the text from the settings"
            " again."
        )
    warnings += warnings_about_language(campaign)
    warnings += retention_contradictions(facts, consent, max_days)
    if smaller_day_count_or_none(facts.identifiers_days, max_days) is None and facts.everything_days is None:
        warnings.append("Ids and names are kept without a time limit: no retention is set.")
    return warnings


def warnings_about_language(campaign: Campaign) -> list[str]:
    """Return a warning if the text is the draft in English, though all other texts are in another language."""
    if campaign.language in (ENGLISH, BROWSER_LANGUAGE) or LAST_SENTENCE not in campaign.consent:
        return []
    warning = (
        f"Annotators’ pages are in {LANGUAGES[campaign.language]}, but the consent text is the English one that Easel "
        "writes. Translate it, and keep its facts."
    )
    return [warning]


def does_line_state_pay(line: str, campaign: Campaign) -> bool:
    """Return whether a line names the pay of the settings: their words, or the amount and its currency."""
    words = words_and_numbers_of_text(line)
    if campaign.pay:
        return contains_run_of_words(words_and_numbers_of_text(campaign.pay), words)
    symbol = words_and_numbers_of_text(get_currency_symbol(campaign.currency, "en"))
    pay_text = StudyFacts.from_campaign(campaign).pay
    amounts = {campaign.pay_per_hit, *words_and_numbers_of_text(pay_text)}
    is_amount_named = any(word in amounts for word in words if isinstance(word, float))
    return is_amount_named and (campaign.currency in words or contains_run_of_words(symbol, words))


def words_and_numbers_of_text(text: str) -> list[str | float]:
    """Return the words, numbers and symbols of a text; 0.50 and 0,50 are the same number, and 1,250 is 1250."""
    return [
        word if not number else float(number.replace(",", "" if THOUSANDS_PATTERN.fullmatch(number) else "."))
        for number, word in NUMBER_OR_WORD_PATTERN.findall(text)
    ]


def contains_run_of_words(run: Sequence[str | float], words: Sequence[str | float]) -> bool:
    return any(words[start : start + len(run)] == run for start in range(len(words)))


def days_text(day_counts: Iterable[int]) -> str:
    """Return numbers of days, such as "30 and 90 days"."""
    numbers = sorted(day_counts)
    return f"{join_with_and([str(number) for number in numbers])} {'day' if numbers == [1] else 'days'}"


def retention_contradictions(facts: StudyFacts, consent: str, max_days: int | None) -> list[str]:
    """Return where the text names other numbers of days than the settings, or lacks some."""
    limited_periods = (facts.identifiers_days, facts.free_text_days, facts.telemetry_days)
    periods = [*(smaller_day_count_or_none(days, max_days) for days in limited_periods), facts.everything_days]
    chosen = {days for days in periods if days is not None}
    named_periods = find_named_periods(consent)
    named = {period.min_days for period in named_periods if period.unit == "day"}
    warnings = []
    if named - chosen:
        warnings.append(
            f"The consent text says {days_text(named - chosen)}, but no setting erases data after that time."
        )
    if unnamed := days_not_named(chosen, named_periods):
        warnings.append(f"The settings erase data after {days_text(unnamed)}, but the consent text does not say so.")
    return warnings
