"""The tables of the experience store.

Rows are only ever added, but for a run that somebody deletes as a whole (`deletion`), and for a sample that counted as
right until the full level refused its program: with the end of its round its verdict is that one (`Overwrite`). Every
row of a run is named by
its content, so that adding it again changes nothing; clock times stand in the columns of `CLOCK`, which no name and no
comparison covers. Long texts (prompts, programs, verdicts) lie once in `text`, under the hash of their content.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, MetaData, String, Table, case

from opsmith.records import Outcome
from opsmith.store.texts import TEXT

VERSION = 10  # what later ones bring: `migrations/versions`
CLOCK = frozenset({"at", "seconds", "id_number", "secret"})  # columns that differ between two equal runs

metadata = MetaData()


def _make_table(name: str, *columns: Column[object], clustered: bool = True) -> Table:
    """`clustered`: the rows lie in the order of their (text) primary key, without a second index."""
    return Table(name, metadata, *columns, sqlite_with_rowid=not clustered)


def _key_column(name: str) -> Column[object]:
    return Column(name, TEXT, primary_key=True)


def _text_column(name: str, null: bool = False) -> Column[object]:
    return Column(name, TEXT, nullable=null)


def _integer_column(name: str, key: bool = False) -> Column[object]:
    return Column(name, Integer, primary_key=key, nullable=False, autoincrement=False)


def _seconds_column(name: str) -> Column[object]:
    return Column(name, Float, nullable=True)


def _number_column() -> Column[object]:
    """For what may happen twice: a number that the database gives."""
    return Column("id_number", Integer, primary_key=True, autoincrement=True)


def _build_columns() -> tuple[Column[object], ...]:
    """Where a candidate that is built ran, and the hash of the JSON of how it was built; null: it was interpreted."""
    return _text_column("device", null=True), _text_column("build", null=True)


meta = _make_table("meta", _key_column("name"), _text_column("value"))
revision = Table("alembic_version", metadata, Column("version_num", String(32), primary_key=True))  # Alembic's own
text = _make_table("text", _key_column("hash"), _text_column("body"))

# A run is named by what decides its result; each start of it is a session.
run = _make_table(
    "run",
    _key_column("id"),
    _text_column("identity"),  # hash of settings, task digests, prompts, versions and experiences at the start
    _text_column("model"),
    Column("is_language_model", Boolean, nullable=False),
    _text_column("target"),
    Column("seed", BigInteger, nullable=False),
    _text_column("settings"),  # JSON, less what has no say in the result
    _text_column("versions"),  # JSON: opsmith, verifier
    _seconds_column("at"),
    _text_column("secret", null=True),  # what its hidden sizes are drawn from; null: the run is older (`EARLIER`)
)
task = _make_table(
    "task",
    _key_column("run"),
    _key_column("id"),
    _text_column("digest"),
    _text_column("body"),
    _text_column("problem", null=True),  # digest of what it asks for in any language; null: its target does not tell
)
session = _make_table(
    "session",
    _number_column(),
    _text_column("run"),
    _text_column("settings"),  # JSON, all of them
    _text_column("versions"),  # JSON: Python, SQLite, torch ...
    _text_column("commit", null=True),
    _seconds_column("at"),
    clustered=False,
)
session_end = _make_table(
    "session_end",  # of a session that ended in good order
    _number_column(),
    _text_column("run"),
    _text_column("reason"),
    _seconds_column("seconds"),  # of the session
    _seconds_column("at"),
    clustered=False,
)
run_end = _make_table(
    "run_end", _key_column("run"), _text_column("reason"), _seconds_column("at")
)  # there is nothing left to do

round_ = _make_table(
    "round",
    _key_column("run"),
    _integer_column("number", key=True),
    _integer_column("cycle"),
    _text_column("level"),  # none, H, HM, HME ...
    _text_column("demonstrations"),  # JSON: [[task, hash of the program], ...], hardest first
    _text_column("attempted"),  # JSON: [task, ...]
    _integer_column("planned"),  # samples
    _seconds_column("at"),
    _text_column("phase", null=True),  # null: functional
    _text_column("fit", null=True),  # JSON: how its prompts were fitted into a stated context window; null: none was
)
round_end = _make_table(
    "round_end", _key_column("run"), _integer_column("number", key=True), _text_column("solved"), _seconds_column("at")
)

request = _make_table(
    "request",
    _key_column("id"),
    _text_column("run"),
    _integer_column("round"),
    _text_column("task"),
    Column("temperature", Float, nullable=False),
    _integer_column("number"),  # of the sample at its temperature
    _text_column("agent"),  # proposer, guardian, repair-1, guardian-1 ..., unanswered-1: `rows`
    _text_column("sample"),  # the proposer's request that this one serves
    _text_column("prompt"),  # hash of the JSON of its messages: `rows.prompt_rows`
    Column("seed", BigInteger, nullable=True),
    _integer_column("max_tokens"),
    _text_column("phase", null=True),  # null: functional
    _text_column("asked", null=True),  # the model, where a run has several; null: the run's own, or its analyst
)
reply = _make_table(
    "reply",
    _key_column("request"),
    _text_column("run"),
    _text_column("texts"),  # JSON, as received, less our own keys
    _text_column("finish"),  # JSON
    _text_column("model"),
    _integer_column("requests"),
    _integer_column("input_tokens"),
    _integer_column("output_tokens"),
    _integer_column("cached_tokens"),
    Column("cost_usd", Float, nullable=True),  # null: not known
    _seconds_column("seconds"),
    _seconds_column("at"),
    _text_column("calls", null=True),  # JSON: of tools, by completion, and what the provider wants back; null: none
    Column("reasoning_tokens", Integer, nullable=True),  # part of the output; null: none, or not told
    Column(
        "shared", Integer, nullable=True
    ),  # completions of one request that share its counts; null: they are its own
)
tool_call = _make_table(
    "tool_call",  # a tool that a model called within a sample, with its result
    _key_column("sample"),
    _integer_column("number", key=True),  # within the sample, from 0
    _text_column("run"),
    _text_column("turn"),  # the agent whose reply called: proposer, tools-1 ...
    _text_column("name"),
    _text_column("arguments"),  # hash
    _text_column("result"),  # hash
    _text_column("outcome"),  # ok, error, refused, limit
    _seconds_column("seconds"),
    _seconds_column("at"),
)
failure = _make_table(
    "failure",  # what left a sample unjudged: no reply, or no verdict
    _number_column(),
    _text_column("run"),
    _text_column("sample"),
    _integer_column("round"),
    _text_column("task"),
    _text_column("charged_to"),
    _text_column("message"),
    _seconds_column("at"),
    _text_column("asked", null=True),  # as of a request
    clustered=False,
)
candidate = _make_table(
    "candidate",
    _key_column("sample"),
    _key_column("id"),  # hash of the source
    _text_column("run"),
    _text_column("parent", null=True),
    _text_column("agent"),  # proposer, guardian, repair-1, guardian-1 ...
    _text_column("parent_sample", null=True),  # that holds the parent; null: this one
)
verdict = _make_table(
    "verdict",
    _key_column("sample"),
    _key_column("candidate"),  # "": the reply held no program
    _text_column("run"),
    _text_column("stage"),
    _text_column("outcome"),
    Column("final", Boolean, nullable=False),  # True for the one that the sample counts by
    _text_column("body"),  # hash of the JSON
    _seconds_column("seconds"),
    _seconds_column("at"),
    *_build_columns(),
)
full_verdict = _make_table(
    "full_verdict",  # on a program that would be kept, at the full level
    _key_column("sample"),
    _key_column("candidate"),
    _text_column("run"),
    _text_column("stage"),
    _text_column("outcome"),
    _text_column("body"),  # hash of the JSON
    _seconds_column("seconds"),
    _seconds_column("at"),
)
control = _make_table(
    "control",  # what somebody who watches wishes; the last one counts
    _number_column(),
    _text_column("run"),
    _text_column("wish"),  # pause or resume
    _seconds_column("at"),
    clustered=False,
)
note = _make_table(
    "note",  # what somebody says of a run; the last one counts
    _key_column("run"),
    _integer_column("number", key=True),  # from 1: each follows the one that its writer has read
    _text_column("body"),
    _seconds_column("at"),
)
tag = _make_table(
    "tag",  # a word by which people find a run; of each the last change counts
    _number_column(),
    _text_column("run"),
    _text_column("name"),
    _text_column("change"),  # add or remove; name: it is the run's name from now on
    _seconds_column("at"),
    clustered=False,
)
reverdict = _make_table(
    "reverdict",  # a later verifier's verdict on a candidate that was judged before
    _key_column("sample"),
    _key_column("candidate"),
    _key_column("verifier"),
    _text_column("run"),
    _text_column("stage"),
    _text_column("outcome"),
    _text_column("body"),  # hash of the JSON
    _seconds_column("seconds"),
    _seconds_column("at"),
    *_build_columns(),
)
batched = _make_table(
    "batched",  # requests that were handed in to a provider's batch API
    _key_column("request"),  # the name that `models.batch` gives it
    _key_column("batch"),
    _text_column("model"),
    _seconds_column("at"),
)
batch_failure = _make_table(
    "batch_failure", _key_column("request"), _key_column("batch"), _seconds_column("at")
)  # came back without a reply
experience = _make_table(
    "experience",
    _key_column("run"),
    _key_column("task"),
    _key_column("digest"),
    _integer_column("round"),
    _text_column("body"),  # hash of the task's JSON
    _text_column("source"),  # hash
    Column("success_rate", Float, nullable=False),
    _text_column("origin"),
    _text_column("sample", null=True),  # the sample it came from; null: it was there at the start
    Column("contaminated", Boolean, nullable=False),  # it equals an example of its own prompt
    Column("gain", Float, nullable=True),  # over the program it began from; null: not known
)
known = _make_table(
    "known",  # a program that was given to a run, with its verdict
    _number_column(),
    _text_column("run"),
    _text_column("task"),
    _text_column("body"),  # hash of the task's JSON
    _text_column("source"),  # hash
    _text_column("author"),  # person, model, rules
    _text_column("place"),  # where it came from
    _text_column("verdict"),  # hash of the JSON
    _seconds_column("seconds"),
    _seconds_column("at"),
    clustered=False,
)
suggestion = _make_table(
    "suggestion",  # the change that an analyst asked of a sample
    _key_column("sample"),
    _text_column("run"),
    _text_column("body"),  # hash of the JSON
    _seconds_column("at"),
)
measurement = _make_table(
    "measurement",  # how fast is it? one program at one shape set
    _key_column("run"),
    _key_column("id"),  # hash of all but the clock times
    _text_column("task"),
    _text_column("sample", null=True),  # whose candidate it is; null: a baseline
    _text_column("program"),  # hash of the source, or the name of a baseline
    _text_column("against", null=True),  # the same of the partner; null: the time stands alone
    _text_column("device"),
    _text_column("shape"),  # JSON: the sizes by symbol
    _text_column("protocol"),
    _text_column("grade"),  # screen or full
    _text_column("unit"),  # of the time: ns, cycles
    Column("value", Float, nullable=True),  # the time, and the ends of its interval; null: it cannot be said
    Column("lower", Float, nullable=True),
    Column("upper", Float, nullable=True),
    _text_column("reason"),  # why there is no time, or no ratio; "": all is there
    _text_column("body"),  # hash of the JSON of the whole measurement
    _seconds_column("seconds"),  # that measuring took
    _seconds_column("at"),
)
profile = _make_table(
    "profile",  # why is it that fast? what the build or a run of a candidate says
    _key_column("run"),
    _key_column("id"),  # hash of all but the clock time
    _text_column("sample"),
    _text_column("candidate"),
    _text_column("device"),
    _text_column("kind"),
    _text_column("media"),  # text/plain, image/png ...
    _text_column("body"),  # hash of the text; what is no text in base64
    _seconds_column("at"),
    _text_column("task", null=True),
)
plan = _make_table(
    "plan",  # how a task, or a part of one, was split
    _key_column("run"),
    _key_column("id"),  # hash of run, task and number
    _text_column("task"),
    _integer_column("number"),  # of the attempts at splitting it, from 0
    _text_column("planner"),  # static, llm
    _text_column("reason"),  # why it was made
    _integer_column("round"),  # the first one that may use it
    _text_column("body"),  # hash of the JSON of the split, or of why there is none
    _seconds_column("at"),
)
plan_node = _make_table(
    "plan_node",  # a part of a split: a task of its own
    _key_column("run"),
    _key_column("id"),  # of the task
    _key_column("plan"),
    _integer_column("place"),  # in the split
    _text_column("digest"),  # of the task
    _text_column("body"),  # hash of the task's JSON
    _seconds_column("at"),
)

PLACE = (request.c.round, request.c.task, request.c.temperature, request.c.number)  # the order of a run's samples
_bill = (
    reply.c.requests,
    reply.c.input_tokens,
    reply.c.output_tokens,
    reply.c.cached_tokens,
    reply.c.cost_usd,
    reply.c.reasoning_tokens,
)
Index("request_by_place", request.c.run, *PLACE, request.c.agent)
Index("reply_by_request", reply.c.run, reply.c.request, *_bill)  # so that sums over replies read nothing else
is_counted = (verdict.c.sample == request.c.id) & verdict.c.final  # a join: the verdict that a sample counts by
is_right = verdict.c.outcome == Outcome.PASSED.value
one_if_right = case((is_right, 1), else_=0)  # to be added up
reply_of = (reply.c.run == request.c.run) & (reply.c.request == request.c.id)  # a join by that index
Index("verdict_by_time", verdict.c.run, verdict.c.at)
Index("full_verdict_by_run", full_verdict.c.run)
Index("candidate_by_agent", candidate.c.run, candidate.c.agent)
Index("control_by_run", control.c.run, control.c.id_number)
Index("known_by_run", known.c.run, known.c.id_number)
Index("tag_by_run", tag.c.run, tag.c.id_number)
Index("suggestion_by_run", suggestion.c.run)
Index("tool_call_by_run", tool_call.c.run)
Index("failure_by_run", failure.c.run, failure.c.round)
