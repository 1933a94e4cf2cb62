"""Which tables does the experience store have?

Rows are only ever added. Every row of a run is named by its content, so that adding it again changes nothing; clock
times stand in the columns of `CLOCK`, which no name and no comparison covers. Long texts (prompts, programs, verdicts)
lie once in `text`, under the hash of their content.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, MetaData, String, Table

from opsmith.store.texts import TEXT

VERSION = 3  # what each brought: `migrations/versions`
CLOCK = frozenset({"at", "seconds", "id_number"})  # columns that differ between two equal runs

metadata = MetaData()


def _table(name: str, *columns: Column[object], clustered: bool = True) -> Table:
    """`clustered`: the rows lie in the order of their (text) primary key, without a second index."""
    return Table(name, metadata, *columns, sqlite_with_rowid=not clustered)


def _key(name: str) -> Column[object]:
    return Column(name, TEXT, primary_key=True)


def _text(name: str, null: bool = False) -> Column[object]:
    return Column(name, TEXT, nullable=null)


def _integer(name: str, key: bool = False) -> Column[object]:
    return Column(name, Integer, primary_key=key, nullable=False, autoincrement=False)


def _seconds(name: str) -> Column[object]:
    return Column(name, Float, nullable=True)


def _number() -> Column[object]:
    """For what may happen twice: a number that the database gives."""
    return Column("id_number", Integer, primary_key=True, autoincrement=True)


meta = _table("meta", _key("name"), _text("value"))
revision = Table("alembic_version", metadata, Column("version_num", String(32), primary_key=True))  # Alembic's own
text = _table("text", _key("hash"), _text("body"))

# A run is named by what decides its result; each start of it is a session.
run = _table(
    "run",
    _key("id"),
    _text("identity"),  # hash of settings, task digests, prompts, versions and experiences at the start
    _text("model"),
    Column("is_language_model", Boolean, nullable=False),
    _text("target"),
    Column("seed", BigInteger, nullable=False),
    _text("settings"),  # JSON, less what has no say in the result
    _text("versions"),  # JSON: opsmith, verifier
    _seconds("at"),
)
task = _table("task", _key("run"), _key("id"), _text("digest"), _text("body"))
session = _table(
    "session",
    _number(),
    _text("run"),
    _text("settings"),  # JSON, all of them
    _text("versions"),  # JSON: Python, SQLite, torch ...
    _text("commit", null=True),
    _seconds("at"),
    clustered=False,
)
session_end = _table(
    "session_end",  # of a session that ended in good order
    _number(),
    _text("run"),
    _text("reason"),
    _seconds("seconds"),  # of the session
    _seconds("at"),
    clustered=False,
)
run_end = _table("run_end", _key("run"), _text("reason"), _seconds("at"))  # there is nothing left to do

round_ = _table(
    "round",
    _key("run"),
    _integer("number", key=True),
    _integer("cycle"),
    _text("level"),  # none, H, HM, HME ...
    _text("demonstrations"),  # JSON: [[task, hash of the program], ...], hardest first
    _text("attempted"),  # JSON: [task, ...]
    _integer("planned"),  # samples
    _seconds("at"),
)
round_end = _table("round_end", _key("run"), _integer("number", key=True), _text("solved"), _seconds("at"))

request = _table(
    "request",
    _key("id"),
    _text("run"),
    _integer("round"),
    _text("task"),
    Column("temperature", Float, nullable=False),
    _integer("number"),  # of the sample at its temperature
    _text("agent"),  # proposer, guardian, repair-1, guardian-1 ...
    _text("sample"),  # the proposer's request that this one serves
    _text("prompt"),  # hash of the JSON [[role, hash of content], ...]
    Column("seed", BigInteger, nullable=True),
    _integer("max_tokens"),
)
reply = _table(
    "reply",
    _key("request"),
    _text("run"),
    _text("texts"),  # JSON, as received, less our own keys
    _text("finish"),  # JSON
    _text("model"),
    _integer("requests"),
    _integer("input_tokens"),
    _integer("output_tokens"),
    _integer("cached_tokens"),
    Column("cost_usd", Float, nullable=True),  # null: not known
    _seconds("seconds"),
    _seconds("at"),
)
failure = _table(
    "failure",  # what left a sample unjudged: no reply, or no verdict
    _number(),
    _text("run"),
    _text("sample"),
    _integer("round"),
    _text("task"),
    _text("charged_to"),
    _text("message"),
    _seconds("at"),
    clustered=False,
)
candidate = _table(
    "candidate",
    _key("sample"),
    _key("id"),  # hash of the source
    _text("run"),
    _text("parent", null=True),
    _text("agent"),  # proposer, guardian, repair-1, guardian-1 ...
)
verdict = _table(
    "verdict",
    _key("sample"),
    _key("candidate"),  # "": the reply held no program
    _text("run"),
    _text("stage"),
    _text("outcome"),
    Column("final", Boolean, nullable=False),  # True for the one that the sample counts by
    _text("body"),  # hash of the JSON
    _seconds("seconds"),
    _seconds("at"),
)
control = _table(
    "control",  # what somebody who watches wishes; the last one counts
    _number(),
    _text("run"),
    _text("wish"),  # pause or resume
    _seconds("at"),
    clustered=False,
)
reverdict = _table(
    "reverdict",  # a later verifier's verdict on a candidate that was judged before
    _key("sample"),
    _key("candidate"),
    _key("verifier"),
    _text("run"),
    _text("stage"),
    _text("outcome"),
    _text("body"),  # hash of the JSON
    _seconds("seconds"),
    _seconds("at"),
)
batched = _table(
    "batched",  # requests that were handed in to a provider's batch API
    _key("request"),  # the name that `models.batch` gives it
    _key("batch"),
    _text("model"),
    _seconds("at"),
)
batch_failure = _table("batch_failure", _key("request"), _key("batch"), _seconds("at"))  # came back without a reply
experience = _table(
    "experience",
    _key("run"),
    _key("task"),
    _key("digest"),
    _integer("round"),
    _text("body"),  # hash of the task's JSON
    _text("source"),  # hash
    Column("success_rate", Float, nullable=False),
    _text("origin"),
    _text("sample", null=True),  # the sample it came from; null: it was there at the start
    Column("contaminated", Boolean, nullable=False),  # it equals an example of its own prompt
)

_place = (request.c.round, request.c.task, request.c.temperature, request.c.number)
_bill = (reply.c.requests, reply.c.input_tokens, reply.c.output_tokens, reply.c.cached_tokens, reply.c.cost_usd)
Index("request_by_place", request.c.run, *_place, request.c.agent)  # the order of a run's list of samples
Index("reply_by_request", reply.c.run, reply.c.request, *_bill)  # so that sums over replies read nothing else
reply_of = (reply.c.run == request.c.run) & (reply.c.request == request.c.id)  # a join by that index
Index("verdict_by_time", verdict.c.run, verdict.c.at)
Index("candidate_by_agent", candidate.c.run, candidate.c.agent)
Index("control_by_run", control.c.run, control.c.id_number)
Index("failure_by_run", failure.c.run, failure.c.round)
