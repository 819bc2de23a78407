"""Sentences about a task with recordings, pictures or videos, for each sentence that says items."""

from collections.abc import Mapping

from app.http.languages.catalogue import Message, message_marked_for_translation

# By the sentence that a design says of items, and the content of the campaign.
SENTENCES_BY_ITEM_SENTENCE: Mapping[str, Mapping[str, str]] = {
    "You see two items at a time and choose one of them, or say that they are about equal.": {
        "audio": message_marked_for_translation(
            "You hear two recordings at a time and choose one of them, or say that they are about equal."
        ),
        "image": message_marked_for_translation(
            "You see two pictures at a time and choose one of them, or say that they are about equal."
        ),
        "video": message_marked_for_translation(
            "You watch two videos at a time and choose one of them, or say that they are about equal."
        ),
    },
    "You see two items at a time and choose one of them.": {
        "audio": message_marked_for_translation("You hear two recordings at a time and choose one of them."),
        "image": message_marked_for_translation("You see two pictures at a time and choose one of them."),
        "video": message_marked_for_translation("You watch two videos at a time and choose one of them."),
    },
    "You see %(items)d items at a time and place each on a scale from “%(low)s” to “%(high)s”, comparing it with "
    "the others.": {
        "audio": message_marked_for_translation(
            "You hear %(items)d recordings at a time and place each on a scale from “%(low)s” to “%(high)s”, "
            "comparing it with the others."
        ),
        "image": message_marked_for_translation(
            "You see %(items)d pictures at a time and place each on a scale from “%(low)s” to “%(high)s”, "
            "comparing it with the others."
        ),
        "video": message_marked_for_translation(
            "You watch %(items)d videos at a time and place each on a scale from “%(low)s” to “%(high)s”, "
            "comparing it with the others."
        ),
    },
    "You see one item at a time and place it on a scale from “%(low)s” to “%(high)s”.": {
        "audio": message_marked_for_translation(
            "You hear one recording at a time and place it on a scale from “%(low)s” to “%(high)s”."
        ),
        "image": message_marked_for_translation(
            "You see one picture at a time and place it on a scale from “%(low)s” to “%(high)s”."
        ),
        "video": message_marked_for_translation(
            "You watch one video at a time and place it on a scale from “%(low)s” to “%(high)s”."
        ),
    },
    "You see %(items)d items at a time and place each by itself on a scale from “%(low)s” to “%(high)s”.": {
        "audio": message_marked_for_translation(
            "You hear %(items)d recordings at a time and place each by itself on a scale from “%(low)s” to “%(high)s”."
        ),
        "image": message_marked_for_translation(
            "You see %(items)d pictures at a time and place each by itself on a scale from “%(low)s” to “%(high)s”."
        ),
        "video": message_marked_for_translation(
            "You watch %(items)d videos at a time and place each by itself on a scale from “%(low)s” to “%(high)s”."
        ),
    },
    "You see one item at a time and choose the best of %(labels)d labels for it.": {
        "audio": message_marked_for_translation(
            "You hear one recording at a time and choose the best of %(labels)d labels for it."
        ),
        "image": message_marked_for_translation(
            "You see one picture at a time and choose the best of %(labels)d labels for it."
        ),
        "video": message_marked_for_translation(
            "You watch one video at a time and choose the best of %(labels)d labels for it."
        ),
    },
    "You see %(items)d items at a time and choose the best of %(labels)d labels for each.": {
        "audio": message_marked_for_translation(
            "You hear %(items)d recordings at a time and choose the best of %(labels)d labels for each."
        ),
        "image": message_marked_for_translation(
            "You see %(items)d pictures at a time and choose the best of %(labels)d labels for each."
        ),
        "video": message_marked_for_translation(
            "You watch %(items)d videos at a time and choose the best of %(labels)d labels for each."
        ),
    },
    "You see one item at a time and tick every label that applies to it.": {
        "audio": message_marked_for_translation(
            "You hear one recording at a time and tick every label that applies to it."
        ),
        "image": message_marked_for_translation(
            "You see one picture at a time and tick every label that applies to it."
        ),
        "video": message_marked_for_translation(
            "You watch one video at a time and tick every label that applies to it."
        ),
    },
    "You see %(items)d items at a time and tick every label that applies to each.": {
        "audio": message_marked_for_translation(
            "You hear %(items)d recordings at a time and tick every label that applies to each."
        ),
        "image": message_marked_for_translation(
            "You see %(items)d pictures at a time and tick every label that applies to each."
        ),
        "video": message_marked_for_translation(
            "You watch %(items)d videos at a time and tick every label that applies to each."
        ),
    },
    "You see %(items)d items at a time and choose two of them: the one that is “%(best)s” and the one that is "
    "“%(worst)s”.": {
        "audio": message_marked_for_translation(
            "You hear %(items)d recordings at a time and choose two of them: the one that is “%(best)s” and the "
            "one that is “%(worst)s”."
        ),
        "image": message_marked_for_translation(
            "You see %(items)d pictures at a time and choose two of them: the one that is “%(best)s” and the one "
            "that is “%(worst)s”."
        ),
        "video": message_marked_for_translation(
            "You watch %(items)d videos at a time and choose two of them: the one that is “%(best)s” and the one "
            "that is “%(worst)s”."
        ),
    },
    "You see %(items)d items at a time and put them in order, from “%(best)s” to “%(worst)s”; equal ones may "
    "share a place.": {
        "audio": message_marked_for_translation(
            "You hear %(items)d recordings at a time and put them in order, from “%(best)s” to “%(worst)s”; equal"
            " ones may share a place."
        ),
        "image": message_marked_for_translation(
            "You see %(items)d pictures at a time and put them in order, from “%(best)s” to “%(worst)s”; equal "
            "ones may share a place."
        ),
        "video": message_marked_for_translation(
            "You watch %(items)d videos at a time and put them in order, from “%(best)s” to “%(worst)s”; equal "
            "ones may share a place."
        ),
    },
    "You see %(items)d items at a time and put them in order, from “%(best)s” to “%(worst)s”.": {
        "audio": message_marked_for_translation(
            "You hear %(items)d recordings at a time and put them in order, from “%(best)s” to “%(worst)s”."
        ),
        "image": message_marked_for_translation(
            "You see %(items)d pictures at a time and put them in order, from “%(best)s” to “%(worst)s”."
        ),
        "video": message_marked_for_translation(
            "You watch %(items)d videos at a time and put them in order, from “%(best)s” to “%(worst)s”."
        ),
    },
    "You see one item at a time and choose one of %(points)d points for it, from “%(low)s” to “%(high)s”.": {
        "audio": message_marked_for_translation(
            "You hear one recording at a time and choose one of %(points)d points for it, from “%(low)s” to “%(high)s”."
        ),
        "image": message_marked_for_translation(
            "You see one picture at a time and choose one of %(points)d points for it, from “%(low)s” to “%(high)s”."
        ),
        "video": message_marked_for_translation(
            "You watch one video at a time and choose one of %(points)d points for it, from “%(low)s” to “%(high)s”."
        ),
    },
    "You see %(items)d items at a time and choose one of %(points)d points for each, from “%(low)s” to “%(high)s”.": {
        "audio": message_marked_for_translation(
            "You hear %(items)d recordings at a time and choose one of %(points)d points for each, from “%(low)s”"
            " to “%(high)s”."
        ),
        "image": message_marked_for_translation(
            "You see %(items)d pictures at a time and choose one of %(points)d points for each, from “%(low)s” to"
            " “%(high)s”."
        ),
        "video": message_marked_for_translation(
            "You watch %(items)d videos at a time and choose one of %(points)d points for each, from “%(low)s” to"
            " “%(high)s”."
        ),
    },
    "You see one item at a time and give it a number compared with a reference of %(value)s.": {
        "audio": message_marked_for_translation(
            "You hear one recording at a time and give it a number compared with a reference of %(value)s."
        ),
        "image": message_marked_for_translation(
            "You see one picture at a time and give it a number compared with a reference of %(value)s."
        ),
        "video": message_marked_for_translation(
            "You watch one video at a time and give it a number compared with a reference of %(value)s."
        ),
    },
    "You see %(items)d items at a time and give each a number compared with a reference of %(value)s.": {
        "audio": message_marked_for_translation(
            "You hear %(items)d recordings at a time and give each a number compared with a reference of %(value)s."
        ),
        "image": message_marked_for_translation(
            "You see %(items)d pictures at a time and give each a number compared with a reference of %(value)s."
        ),
        "video": message_marked_for_translation(
            "You watch %(items)d videos at a time and give each a number compared with a reference of %(value)s."
        ),
    },
}


def message_about_content(message: Message, content: str) -> Message:
    """Return a sentence about items as one about recordings, pictures or videos if the campaign's items are these."""
    sentence = SENTENCES_BY_ITEM_SENTENCE.get(message.pattern, {}).get(content)
    return message if sentence is None else Message(sentence, **message.values)
