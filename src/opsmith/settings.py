"""The settings of one run, in one object: what the command line and a TOML file of settings fill in."""

from __future__ import annotations

from math import inf
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

Temperature = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Settings(BaseModel):
    """Resolved settings; saved beside the results of every run (keys never are)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = "embedded"  # a name that `opsmith models` lists
    base_url: str | None = None  # an OpenAI- or Anthropic-compatible server of the user's own
    tasks: tuple[str, ...] = ()  # task ids, files or folders; empty: the 26 tasks of the paper
    samples: int = Field(default=64, ge=1)  # per task, round and temperature
    temperatures: tuple[Temperature, ...] = Field(default=(0.4, 0.7, 1.0), min_length=1)
    levels: int = Field(default=3, ge=1)  # m of Algorithm 1: the number of difficulty bins
    agents: Literal["single", "agent"] = "agent"  # the proposer alone, or proposer and guardian
    guardian: Literal["static", "llm"] = "static"
    prompt: Literal["structural", "bare"] = "structural"  # bare: without structural IR, in the host language (Python)
    selection: Literal["adaptive", "all", "random", "similar", "none"] = "adaptive"  # none: no demonstrations at all
    repair: int = Field(default=0, ge=0)  # turns in which a refused candidate's errors go back to the proposer
    seed: int = Field(default=0, ge=-(2**63), lt=2**63)
    max_rounds: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0)  # USD; the run stops cleanly before it would cost more
    max_tokens: int = Field(default=1024, ge=1, lt=2**31)  # output tokens of one reply
    completions: int = Field(default=1, ge=1)  # samples that one request of the proposer asks for, where it may
    concurrency: int = Field(default=16, ge=1)  # requests in flight
    request_timeout: float = Field(default=300.0, gt=0, allow_inf_nan=False)  # s, of one attempt
    request_deadline: float = Field(default=900.0, validate_default=True)  # s, of all attempts and waits of a request
    batch: bool = False  # hand requests in to the provider's batch API: half the price, hours of waiting
    requests_per_minute: int | None = Field(default=None, ge=1)  # a provider's limit; None: as it answers
    tokens_per_minute: int | None = Field(default=None, ge=1)
    workers: int = Field(default=2, ge=1)  # verifier processes, and as many of the embedded model, on each machine
    executor: Literal["local", "ray"] = "local"  # where the embedded model samples and candidates are judged
    ray_address: str | None = None  # of the cluster's head, or auto; None: a Ray on this machine, for the run
    trust_tasks: bool = False  # run tasks that are not bundled even where nothing isolates them
    from_run: str | None = None  # a finished run whose experiences are where this one starts
    budget_from: str | None = None  # spend the same total of samples as that run (with selection = none)
    tokens_from: str | None = None  # spend as many input and output tokens as that run (with selection = none)
    noise: float = Field(default=0.0, ge=0.0, le=1.0)  # embedded only: share of replies spoiled as real models do

    @field_validator("request_deadline")
    @classmethod
    def _holds_an_attempt(cls, value: float, info: ValidationInfo) -> float:
        timeout = info.data.get("request_timeout", 0.0)  # absent: it is wrong itself, which is said
        if not timeout <= value < inf:
            raise ValueError(f"a number of seconds from request_timeout ({timeout:g}) on")
        return value
