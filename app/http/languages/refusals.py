"""Messages of refusals that annotators can meet, by their stable code: what happened, what is safe, what to do.

In English a refusal shows its own message, with details. In other languages the code alone selects the message.
"""

from app.http.languages.catalogue import ENGLISH, mark_message, translate

ANNOTATOR_REFUSALS = {
    "answer_changed_often": mark_message(
        "You have changed these answers many times, so they can no longer be changed. Your latest answers are stored."
    ),
    "answer_final": mark_message("These answers can no longer be changed. Your first answers are stored."),
    "answer_impossible": mark_message("These choices do not go together. What you entered is kept."),
    "answer_not_a_number": mark_message("One of the values is not a number. What you entered is kept."),
    "answer_out_of_range": mark_message(
        "One of the values is not one that is possible here. What you entered is kept."
    ),
    "answer_too_long": mark_message("One of the answers is too long, or holds something that cannot be seen."),
    "answer_unknown": mark_message("Please choose one of the answers that are offered."),
    "arrival_doubled": mark_message(
        "The link that brought you here has one of your ids twice. Nothing was stored. Please return the task and"
        " tell the researcher."
    ),
    "arrival_incomplete": mark_message(
        "The link that brought you here lacks one of your ids. Nothing was stored. Please return the task and "
        "tell the researcher."
    ),
    "arrival_placeholder": mark_message(
        "The link that brought you here has a placeholder in the place of your id. Nothing was stored. Please "
        "return the task and tell the researcher."
    ),
    "assignment_not_found": mark_message("This task no longer exists."),
    "campaign_not_found": mark_message("There is no task at this address. Please check that the link is complete."),
    "class_unknown": mark_message("One of the labels is not one of this task. What you entered is kept."),
    "comment_too_long": mark_message("One of the comments is too long. What you entered is kept."),
    "consent_changed": mark_message(
        "The text has changed since you opened this page. Please read it once more, then answer."
    ),
    "consent_missing": mark_message("Say whether you agree. Nothing was stored."),
    "criteria_missing": mark_message("Not every question has an answer yet. What you entered is kept."),
    "database_unavailable": mark_message("The server is busy. Nothing was lost; please try again in a moment."),
    "draft_too_large": mark_message("This draft is too large to keep."),
    "field_twice": mark_message("The form holds one field twice. Nothing was stored."),
    "hit_missing": mark_message("This answer does not say which set it belongs to. Nothing was stored."),
    "hit_not_found": mark_message("This set is not yours or does not exist. Nothing was stored."),
    "http_error": mark_message("The server did not understand this. Nothing was stored."),
    "internal_error": mark_message("Something went wrong on our side. What you did before is safe; please try again."),
    "invalid": mark_message("The server did not understand this. Nothing was stored."),
    "item_not_shown": mark_message("This report is about an item that this set does not show. Nothing was stored."),
    "judged_in_part": mark_message("An item that cannot be judged has no value for any criterion. Nothing was stored."),
    "link_closed": mark_message(
        "Only invited people can take part in this task. Please use the link that you were sent."
    ),
    "lease_expired": mark_message(
        "Your time for these items had run out, and they are no longer yours to answer, so this answer was not "
        "stored. Your earlier answers are safe."
    ),
    "media_not_found": mark_message("There is no such file."),
    "method_not_allowed": mark_message("The server did not understand this. Nothing was stored."),
    "not_found": mark_message("There is no such page."),
    "may_not_take_part": mark_message("This task is for other people, so it is not open to you."),
    "not_played": mark_message("Not everything was played yet. Play it, then submit again. What you entered is kept."),
    "nul_byte": mark_message("There is a character in what was sent that cannot be stored. Nothing was stored."),
    "passphrase_missing": mark_message("Enter the passphrase that came with the link."),
    "passphrase_wrong": mark_message("This is not the passphrase. Please check it, then try again."),
    "personal_link_unknown": mark_message(
        "This link is not on the list of this task. Please use the whole link that you were sent, or ask its sender."
    ),
    "question_unanswered": mark_message("Please answer every question. What you entered is kept."),
    "reason_missing": mark_message("Please say why an item cannot be judged. What you entered is kept."),
    "reason_unknown": mark_message(
        "Please choose one of the reasons why an item cannot be judged. What you entered is kept."
    ),
    "score_ambiguous": mark_message(
        "One of the values can be read as two numbers. Write it without the comma, or with a point. What you entered "
        "is kept."
    ),
    "score_not_a_number": mark_message("One of the values is not a number. What you entered is kept."),
    "score_out_of_range": mark_message("One of the values is not one that is possible here. What you entered is kept."),
    "scores_missing": mark_message("Something is not answered yet. What you entered is kept."),
    "scores_unknown": mark_message("The answer is about items that are not in this set. Nothing was stored."),
    "submit_url_not_allowed": mark_message(
        "This link asks to send your answer to a site that is not known here. Nothing was sent. Please return "
        "this task and tell the requester."
    ),
    "token_expired": mark_message(
        "This page was open for too long. Answers you submitted are safe. Open the task’s link again to go on."
    ),
    "token_invalid": mark_message(
        "This page’s link is damaged. Answers you submitted are safe. Open the task’s link again to go on."
    ),
    "too_large": mark_message("What was sent is too large. Nothing was stored."),
    "too_many_attempts": mark_message("Too many attempts. Please wait a moment and try again."),
    "too_many_visits": mark_message("Many people have come from your network. Please wait a moment and try again."),
    "training_over": mark_message(
        "You have tried this set many times, so the training ends here for you. Thank you for trying."
    ),
    "withdrawal_final": mark_message("This can no longer be taken back. Nothing was changed."),
    "not_withdrawn": mark_message("Nothing is withdrawn. Your answers are kept."),
    "withdrawal_not_offered": mark_message("Here only the researcher can remove answers. Nothing was changed."),
    "unreadable_body": mark_message("What was sent cannot be read. Nothing was stored."),
}
UNKNOWN_REFUSAL = mark_message("This was refused. What you submitted before is safe.")


def translate_refusal(language: str, code: str, message: str) -> str:
    """Return a refusal in a language: its own message in English, else the translated message for its code."""
    return message if language == ENGLISH else translate(language, ANNOTATOR_REFUSALS.get(code, UNKNOWN_REFUSAL))
