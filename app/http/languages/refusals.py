"""Messages of refusals that annotators can meet, by their stable code: what happened, what is safe, what to do.

In English a refusal shows its own message, with details. In other languages the code alone selects the message.
"""

from app.http.languages.catalogue import ENGLISH, message_marked_for_translation, translate

ANNOTATOR_REFUSALS = {
    "answer_changed_often": message_marked_for_translation(
        "You have changed these answers many times, so they can no longer be changed. Your latest answers are stored."
    ),
    "answer_final": message_marked_for_translation(
        "These answers can no longer be changed. Your first answers are stored."
    ),
    "answer_impossible": message_marked_for_translation("These choices do not go together. What you entered is kept."),
    "answer_not_a_number": message_marked_for_translation(
        "One of the values is not a number. What you entered is kept."
    ),
    "answer_out_of_range": message_marked_for_translation(
        "One of the values is not one that is possible here. What you entered is kept."
    ),
    "answer_too_long": message_marked_for_translation(
        "One of the answers is too long, or holds something that cannot be seen."
    ),
    "answer_unknown": message_marked_for_translation("Please choose one of the answers that are offered."),
    "arrival_doubled": message_marked_for_translation(
        "The link that brought you here has one of your ids twice. Nothing was stored. Please return the study and"
        " tell the researcher."
    ),
    "arrival_incomplete": message_marked_for_translation(
        "The link that brought you here lacks one of your ids. Nothing was stored. Please return the study and "
        "tell the researcher."
    ),
    "arrival_placeholder": message_marked_for_translation(
        "The link that brought you here has a placeholder in the place of your id. Nothing was stored. Please "
        "return the study and tell the researcher."
    ),
    "assignment_not_found": message_marked_for_translation("This study no longer exists."),
    "campaign_not_found": message_marked_for_translation(
        "There is no study at this address. Please check that the link is complete."
    ),
    "class_unknown": message_marked_for_translation(
        "One of the labels is not one of this study. What you entered is kept."
    ),
    "comment_missing": message_marked_for_translation(
        "Please write an answer to the question below the items. What you entered is kept."
    ),
    "comment_too_long": message_marked_for_translation("One of the comments is too long. What you entered is kept."),
    "consent_changed": message_marked_for_translation(
        "The text has changed since you opened this page. Please read it once more, then answer."
    ),
    "consent_missing": message_marked_for_translation("Say whether you agree. Nothing was stored."),
    "criteria_missing": message_marked_for_translation(
        "Not every question has an answer yet. What you entered is kept."
    ),
    "database_unavailable": message_marked_for_translation(
        "The server is busy. Nothing was lost; please try again in a moment."
    ),
    "draft_too_large": message_marked_for_translation("This draft is too large to keep."),
    "field_twice": message_marked_for_translation("The form holds one field twice. Nothing was stored."),
    "hit_missing": message_marked_for_translation(
        "This answer does not say which task it belongs to. Nothing was stored."
    ),
    "hit_not_found": message_marked_for_translation("This task is not yours or does not exist. Nothing was stored."),
    "http_error": message_marked_for_translation("The server did not understand this. Nothing was stored."),
    "internal_error": message_marked_for_translation(
        "Something went wrong on our side. What you did before is safe; please try again."
    ),
    "invalid": message_marked_for_translation("The server did not understand this. Nothing was stored."),
    "item_not_shown": message_marked_for_translation(
        "This report is about an item that this task does not show. Nothing was stored."
    ),
    "judged_in_part": message_marked_for_translation(
        "An item that cannot be judged has no value for any criterion. Nothing was stored."
    ),
    "link_closed": message_marked_for_translation(
        "Only invited people can take part in this study. Please use the link that you were sent."
    ),
    "lease_expired": message_marked_for_translation(
        "Your time for these items had run out, and they are no longer yours to answer, so this answer was not "
        "stored. Your earlier answers are safe."
    ),
    "media_not_found": message_marked_for_translation("There is no such file."),
    "method_not_allowed": message_marked_for_translation("The server did not understand this. Nothing was stored."),
    "not_found": message_marked_for_translation("There is no such page."),
    "may_not_take_part": message_marked_for_translation("This study is for other people, so it is not open to you."),
    "not_played": message_marked_for_translation(
        "Not everything was played yet. Play it, then submit again. What you entered is kept."
    ),
    "nul_byte": message_marked_for_translation(
        "There is a character in what was sent that cannot be stored. Nothing was stored."
    ),
    "passphrase_missing": message_marked_for_translation("Enter the passphrase that came with the link."),
    "passphrase_wrong": message_marked_for_translation("This is not the passphrase. Please check it, then try again."),
    "personal_link_unknown": message_marked_for_translation(
        "This link is not on the list of this study. Please use the whole link that you were sent, or ask its sender."
    ),
    "question_unanswered": message_marked_for_translation("Please answer every question. What you entered is kept."),
    "reason_missing": message_marked_for_translation(
        "Please say why an item cannot be judged. What you entered is kept."
    ),
    "reason_unknown": message_marked_for_translation(
        "Please choose one of the reasons why an item cannot be judged. What you entered is kept."
    ),
    "score_ambiguous": message_marked_for_translation(
        "One of the values can be read as two numbers. Write it without the comma, or with a point. What you entered "
        "is kept."
    ),
    "score_not_a_number": message_marked_for_translation(
        "One of the values is not a number. What you entered is kept."
    ),
    "score_out_of_range": message_marked_for_translation(
        "One of the values is not one that is possible here. What you entered is kept."
    ),
    "scores_missing": message_marked_for_translation("Something is not answered yet. What you entered is kept."),
    "scores_unknown": message_marked_for_translation(
        "The answer is about items that are not in this task. Nothing was stored."
    ),
    "submit_url_not_allowed": message_marked_for_translation(
        "This link asks to send your answer to a site that is not known here. Nothing was sent. Please return "
        "this task and tell the requester."
    ),
    "token_expired": message_marked_for_translation(
        "This page was open for too long. Answers you submitted are safe. Open the study’s link again to go on."
    ),
    "token_invalid": message_marked_for_translation(
        "This page’s link is damaged. Answers you submitted are safe. Open the study’s link again to go on."
    ),
    "too_large": message_marked_for_translation("What was sent is too large. Nothing was stored."),
    "too_many_attempts": message_marked_for_translation("Too many attempts. Please wait a moment and try again."),
    "too_many_visits": message_marked_for_translation(
        "Many people have come from your network. Please wait a moment and try again."
    ),
    "training_over": message_marked_for_translation(
        "You have tried this task many times, so the training ends here for you. Thank you for trying."
    ),
    "was_erased": message_marked_for_translation(
        "Your data were erased from this study, so you cannot take part in it again."
    ),
    "withdrawal_final": message_marked_for_translation("This can no longer be taken back. Nothing was changed."),
    "not_withdrawn": message_marked_for_translation("Nothing is withdrawn. Your answers are kept."),
    "withdrawal_not_offered": message_marked_for_translation(
        "Here only the researcher can remove answers. Nothing was changed."
    ),
    "unreadable_body": message_marked_for_translation("What was sent cannot be read. Nothing was stored."),
}
UNKNOWN_REFUSAL = message_marked_for_translation("This was refused. What you submitted before is safe.")


def translate_refusal(language: str, code: str, message: str) -> str:
    """Return a refusal in a language: its own message in English, else the translated message for its code."""
    return message if language == ENGLISH else translate(language, ANNOTATOR_REFUSALS.get(code, UNKNOWN_REFUSAL))
