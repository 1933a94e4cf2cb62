"""`vf-eval opsmith-step26 ...`: the suite as an environment of PrimeIntellect's `verifiers`; verdicts are rewards.

A rollout is one request with the messages of a run, and one reply. A right program is worth 1, or up to 2 with
`--taskset.task.speed` (`bridges/rewards` says how much), any other reply 0; a reply that cannot be judged raises, which
`verifiers` records as an error of the rollout without a reward. Several rollouts of a task are its own: `-r N`, or
`--env.id best-of-n`. Not covered: the guardian, and the rounds of a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf
from openai import APIConnectionError, APIStatusError, AsyncOpenAI
from pydantic import field_validator

from opsmith.agents.prompt import format_yaml_block
from opsmith.bridges.judging import JudgedReply, NotJudgedError, TaskHandle, describe_verdict, judge_reply
from opsmith.bridges.questions import AskedLanguage, Question, choose_language, make_questions, split_names
from opsmith.errors import OpsmithError
from opsmith.suites import resolve_names

CANNOT_REACH = 97  # the exit code by which a harness says that the connection to its model failed


class StepData(vf.TaskData):
    """A question, and what finds its task again."""

    task: str
    digest: str
    group: str
    demonstrations: list[str]
    target: str = ""
    options: str = ""


class StepTaskConfig(vf.TaskConfig):
    trust_tasks: bool = False
    """Judge tasks that are not bundled even where nothing isolates their code."""
    speed: bool = False
    """Reward speed too, measured here: only for languages whose programs are timed."""


class StepTask(vf.Task[StepData, vf.State, StepTaskConfig]):
    """An operator to be written."""

    @vf.reward
    async def verdict(self, trace: vf.Trace) -> float:
        """0, 1, or up to 2. Raises NotJudgedError: `verifiers` counts no reward then, and tells an error."""
        try:
            reply = await self._judge_text(trace.last_reply)
        except NotJudgedError as problem:
            trace.info["verdict"] = describe_verdict(problem.verdict) if problem.verdict else None
            raise
        trace.info["verdict"] = reply.plain_facts | {"message": reply.verdict.message}
        trace.record_metric("stage", reply.verdict.stage.rank)
        if reply.speed is not None and reply.speed.ratio is not None:
            trace.record_metric("ratio", reply.speed.ratio)
        return reply.reward

    async def validate(self, runtime: vf.Runtime) -> bool | None:
        """Whether the task file's own program passes; None: it has none."""
        program = self._handle.find_task().impl
        return (
            None if program is None else (await self._judge_text(f"impl: {format_yaml_block(program)}")).verdict.passed
        )

    async def _judge_text(self, reply: str) -> JudgedReply:
        return await judge_reply(self._handle, reply)

    @property
    def _handle(self) -> TaskHandle:
        language = AskedLanguage(self.data.target, self.data.options)
        return TaskHandle(self.data.task, self.data.digest, language, self.config.trust_tasks, self.config.speed)


class StepTasksetConfig(vf.TasksetConfig):
    tasks: str = ""
    """Ids, suites, files or folders, with commas; none: the paper's 26 tasks."""
    from_run: str | None = None
    """A run of `opsmith run` whose solutions are shown as demonstrations."""
    out: str = "runs"
    """The folder of that run's store."""
    target: str = ""
    """The language that is asked for; none: that of the task files."""
    options: str = ""
    """How that language builds and runs programs: `threads=2 flags=-O2`."""
    task: StepTaskConfig = StepTaskConfig()

    @field_validator("tasks")
    @classmethod
    def _are_known(cls, tasks: str) -> str:
        try:
            resolve_names(split_names(tasks))
        except OpsmithError as error:
            raise ValueError(str(error)) from error
        return tasks


class StepTaskset(vf.Taskset[StepTask, StepTasksetConfig]):
    """The tasks, each with the messages of a run."""

    def load(self) -> Iterator[StepTask]:
        language = choose_language(self.config.target, self.config.options)
        for question in make_questions(self.config.tasks, self.config.from_run, self.config.out, language):
            yield StepTask(_data(question), self.config.task)


def _data(question: Question) -> StepData:
    system, user = question.messages
    name, demonstrations = question.task.id, list(question.demonstrations)
    about = question.about
    return StepData(
        id=name, name=name, system_prompt=system.content, prompt=user.content, demonstrations=demonstrations, **about
    )


class OneAnswerConfig(vf.HarnessConfig):
    pass


class OneAnswer(vf.Harness[OneAnswerConfig]):
    """The simplest program that can play: it sends the prompt once, and runs nothing."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        system, prompt = self.resolve_text_prompt(data)
        messages: list[Any] = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": prompt or ""})
        async with AsyncOpenAI(base_url=endpoint, api_key=secret, timeout=None) as client:
            try:
                reply = await client.chat.completions.create(model=ctx.model, messages=messages)
            except APIConnectionError as error:
                return vf.ProgramResult(CANNOT_REACH, "", str(error))
            except APIStatusError as error:  # what the provider said is on the trace already
                return vf.ProgramResult(1, "", str(error))
        return vf.ProgramResult(0, reply.choices[0].message.content or "", "")


class StepEnvConfig(vf.SingleAgentEnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())
    """Plays here: nothing that a model writes is executed outside the verifier's workers."""


class StepEnv(vf.SingleAgentEnv, vf.Env[StepEnvConfig]):
    """One agent, one reply."""
