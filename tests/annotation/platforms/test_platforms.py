import pytest

from app.annotation.platforms.mturk.platform import MTURK_PREVIEW_ASSIGNMENT_ID
from app.annotation.platforms.platform import Arrival, Completion
from app.annotation.platforms.registry import PLATFORMS
from app.annotation.platforms.settings import RETURN_SETTING_NAMES
from app.errors import Invalid
from app.settings import Settings

MTURK = {
    "assignmentId": "A1", "hitId": "H1", "workerId": "W1", "turkSubmitTo": "https://workersandbox.mturk.com",
}  # fmt: skip
NO_WAY = dict.fromkeys(RETURN_SETTING_NAMES)
PROLIFIC = {"PROLIFIC_PID": "p1", "STUDY_ID": "s1", "SESSION_ID": "x1"}


def read(platform, parameters, *extra):
    """Return the platform's reading of `parameters`, as a mapping or as pairs in which a name may occur twice."""
    query = list(parameters.items()) if isinstance(parameters, dict) else parameters
    return PLATFORMS[platform].parse_arrival_or_none(query, Settings(mturk_submit_origins=extra))


def refusal_of(platform, parameters):
    with pytest.raises(Invalid) as refusal:
        read(platform, parameters)
    return refusal.value


def test_mturk_parameters_become_an_arrival():
    arrival = read("mturk", MTURK)
    assert (arrival.worker_id, arrival.assignment_id) == ("W1", "A1")


def test_after_the_answer_mturk_gets_exactly_its_assignment_id_and_one_more_field():
    completion = PLATFORMS["mturk"].build_completion(read("mturk", MTURK).details, NO_WAY, "completed")
    assert completion.url == "https://workersandbox.mturk.com/mturk/externalSubmit"
    assert completion.fields["assignmentId"] == "A1"
    assert len(completion.fields) > 1


@pytest.mark.parametrize("parameters", [{}, {"assignmentId": MTURK_PREVIEW_ASSIGNMENT_ID, "hitId": "H1"}])
def test_a_preview_is_nobody(parameters):
    assert read("mturk", parameters) is None


def test_a_missing_submit_address_falls_back_to_mturk():
    parameters = {name: value for name, value in MTURK.items() if name != "turkSubmitTo"}
    assert read("mturk", parameters).details["turkSubmitTo"] == "https://www.mturk.com"


def test_worker_ids_are_posted_to_no_other_host(subtests):
    for elsewhere in (
        "https://evil.example",
        "http://www.mturk.com",
        "https://www.mturk.com.evil.example",
        "https://www.mturk.com@evil.example",
        "https://www.mturk.com/other",
        "javascript:alert(1)",
    ):
        with subtests.test(elsewhere=elsewhere):
            with pytest.raises(Invalid) as refusal:
                read("mturk", MTURK | {"turkSubmitTo": elsewhere})
            assert refusal.value.code == "submit_url_not_allowed"


def test_the_operator_can_allow_another_origin():
    arrival = read("mturk", MTURK | {"turkSubmitTo": "http://127.0.0.1:9000/"}, "http://127.0.0.1:9000")
    assert arrival.details["turkSubmitTo"] == "http://127.0.0.1:9000"


@pytest.mark.parametrize("missing", ["hitId", "workerId"])
def test_an_incomplete_mturk_link_is_refused(missing):
    refusal = refusal_of("mturk", MTURK | {missing: " "})
    assert (refusal.code, refusal.details["parameter"]) == ("arrival_incomplete", missing)


def test_prolific_session_is_the_assignment():
    assert read("prolific", PROLIFIC) == Arrival("p1", "x1", {"STUDY_ID": "s1"})


def test_prolific_annotators_return_with_the_completion_code():
    completion = PLATFORMS["prolific"].build_completion({}, NO_WAY | {"prolific_completion_code": "C0DE"}, "completed")
    assert completion.url == "https://app.prolific.com/submissions/complete?cc=C0DE"


def test_without_a_code_there_is_nowhere_to_return_to():
    assert PLATFORMS["prolific"].build_completion({}, NO_WAY, "completed") == Completion()
    assert PLATFORMS["link"].build_completion({}, NO_WAY, "completed") == Completion()


def test_an_unusable_prolific_id_is_refused(subtests):
    for value in ("", "  ", "x" * 201, "a\x00b", "a\nb"):
        with subtests.test(value=value):
            assert refusal_of("prolific", PROLIFIC | {"PROLIFIC_PID": value}).code == "arrival_incomplete"


def test_a_placeholder_that_nobody_filled_in_is_nobody(subtests):
    for left in ("{{{{%{}%}}}}", "{{{{{}}}}}", "%{}%", "${{{}}}", "<{}>", "[{}]", "{}"):
        for name in PROLIFIC:
            with subtests.test(left=left, name=name):
                refusal = refusal_of("prolific", PROLIFIC | {name: left.format(name)})
                assert (refusal.code, refusal.details["parameter"]) == ("arrival_placeholder", name)


def test_a_parameter_given_twice_says_nothing_certain(subtests):
    for second in ("other", "", None):
        for name, value in PROLIFIC.items():
            with subtests.test(second=second, name=name):
                twice = [*PROLIFIC.items(), (name, value if second is None else second)]
                refusal = refusal_of("prolific", twice)
                assert (refusal.code, refusal.details["parameter"]) == ("arrival_doubled", name)


def test_parameters_of_others_may_be_there_in_any_number():
    query = [*PROLIFIC.items(), ("utm", "{{a}}"), ("utm", "b")]
    assert read("prolific", query) == Arrival("p1", "x1", {"STUDY_ID": "s1"})


def test_a_link_that_cannot_be_used_has_words_for_the_person_and_for_the_researcher():
    refusal = refusal_of("prolific", PROLIFIC | {"SESSION_ID": "{{%SESSION_ID%}}"})
    assert "return the study on Prolific" in refusal.message
    assert "I’ll use URL parameters" in refusal.details["for_researcher"]


def test_a_link_visitor_is_nobody_before_they_start():
    assert read("link", {"anything": "goes"}) is None
