"""`inspect eval opsmith/step26 --model ...`: the suite as a task of Inspect AI, with our verdict as its score.

Each sample is a task with the messages of a run. A right program scores C, any other reply I; a reply that cannot be
judged has no score, only the reason: Inspect leaves it out of every metric and reducer. pass@k is Inspect's own:
`--epochs 8 --epochs-reducer pass_at_1,pass_at_8`. Not covered: the guardian, and the rounds of a run.
"""

from __future__ import annotations

from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageSystem, ChatMessageUser, GenerateConfig
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, grouped, scorer, stderr
from inspect_ai.solver import TaskState, generate
from rich.markup import escape

from opsmith.bridges.judging import JudgedReply, NotJudgedError, describe_verdict, judge_reply
from opsmith.bridges.questions import Question, make_questions
from opsmith.errors import OpsmithError
from opsmith.models import Message
from opsmith.settings import Settings


@task
def step26(
    tasks: str | list[str] | None = None,
    from_run: str | None = None,
    out: str = "runs",
    trust_tasks: bool = False,
) -> Task:
    """Write operators in STeP.

    Args:
        tasks: ids, suites, files or folders (with commas); none: the paper's 26 tasks.
        from_run: a run of `opsmith run` whose solutions are shown as demonstrations.
        out: the folder of that run's store.
        trust_tasks: judge tasks that are not bundled even where nothing isolates their code.
    """
    try:
        samples = [_make_sample(question) for question in make_questions(tasks or (), from_run, out)]
    except OpsmithError as error:
        raise PrerequisiteError(escape(str(error))) from error  # Inspect shows the message and not where it came from
    return Task(
        dataset=MemoryDataset(samples, name="opsmith" if tasks else "step26"),
        solver=generate(),
        scorer=verdict(trust_tasks=trust_tasks),
        config=GenerateConfig(max_tokens=Settings().method.max_tokens),
    )


@scorer(metrics=[grouped(accuracy(), "group"), stderr()])
def verdict(trust_tasks: bool = False) -> Scorer:
    """C where the verifier passes the program in the reply, I where it refuses it, no score where it cannot tell."""

    async def score(state: TaskState, target: Target) -> Score:
        about = state.metadata
        try:
            reply = await judge_reply(about["task"], about["digest"], state.output.completion, trust_tasks)
        except NotJudgedError as problem:
            return _make_unscored(problem)
        return _make_score(reply)

    return score


def _make_sample(question: Question) -> Sample:
    messages = [_make_message(message) for message in question.messages]
    about = question.about | {"demonstrations": list(question.demonstrations)}
    return Sample(input=messages, id=question.task.id, metadata=about)


def _make_message(message: Message) -> ChatMessage:
    kind = ChatMessageSystem if message.role == "system" else ChatMessageUser
    return kind(content=message.content)


def _make_score(reply: JudgedReply) -> Score:
    return Score(
        value=CORRECT if reply.verdict.passed else INCORRECT,
        answer=reply.program,
        explanation=reply.verdict.message,
        reason="invalid_response_format" if reply.program is None else None,
        metadata=reply.plain_facts,
    )


def _make_unscored(problem: NotJudgedError) -> Score:
    metadata = describe_verdict(problem.verdict) if problem.verdict else None
    return Score.unscored(reason="scoring_failed", answer=problem.program, explanation=str(problem), metadata=metadata)
