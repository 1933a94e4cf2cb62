"""A repair turn: the same conversation, the reply as it was, and the verdict's errors in block form."""

from opsmith.agents import repair
from opsmith.models import Message
from opsmith.records import Boundary, Diagnostic, Outcome, Stage, Verdict

PROMPT = (Message("system", "base"), Message("user", "task: {}"))
ERROR = Diagnostic("TYPE", "Zip", "dims [M]", "dims [N]", "Repeat it first", line=2, text="E3 = step.Zip()")


def refused(*errors: Diagnostic) -> Verdict:
    return Verdict("c", Stage("TYPE"), Outcome.REFUSED, Boundary.CANDIDATE, errors)


def test_a_turn_repeats_nothing_and_says_what_was_wrong() -> None:
    messages = repair.request_repair(PROMPT, "impl: x", refused(ERROR))
    assert messages[:2] == PROMPT
    assert messages[2] == Message("assistant", "impl: x")
    assert messages[3].role == "user"
    assert messages[3].content == (
        "The answer was refused at TYPE.\n\n"
        f"{ERROR.block()}\n\n"
        "Mend what is wrong and answer with the whole program again, in the same form as before.\n"
    )


def test_words_that_only_the_target_knows_are_explained_in_the_findings_alone() -> None:
    explain = lambda findings: findings.replace("[M]", "[M] (M = 5)")  # noqa: E731
    words = repair.request_repair(PROMPT, "one", refused(ERROR), "# dims [M]", explain)[3].content
    assert "given:    dims [M] (M = 5)\n" in words
    assert "# dims [M]\n" in words


def test_the_next_turn_goes_on_from_there() -> None:
    first = repair.request_repair(PROMPT, "one", refused(ERROR))
    second = repair.request_repair(first, "two", refused(ERROR))
    assert second[: len(first)] == first
    assert [message.role for message in second] == ["system", "user", "assistant", "user", "assistant", "user"]


def test_an_empty_reply_is_never_sent_back_empty() -> None:
    assert repair.request_repair(PROMPT, " \n", refused(ERROR))[2].content == repair.NO_TEXT


def test_where_a_guardian_changed_the_program_its_text_is_shown() -> None:
    words = repair.request_repair(PROMPT, "one", refused(ERROR), "E1 = f(E0)\nreturn E1\n")[3].content
    assert "The guardian made this of the program:\n\nE1 = f(E0)\nreturn E1\n\nThe answer was refused" in words


def test_of_many_findings_the_first_are_shown_and_the_rest_counted() -> None:
    words = repair.request_repair(PROMPT, "one", refused(*[ERROR] * 13))[3].content
    assert words.count("where:") == repair.MAX_ERRORS
    assert "(3 more findings like these)" in words
