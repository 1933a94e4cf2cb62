"""Which executor a run gets; what cannot be had is one message, in seconds."""

from __future__ import annotations

import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from clocks import lasts_at_most
from learn import tiny_run
from terminals import hears_hangup
from tiny_target import TINY, register, tiny_task

from opsmith import api
from opsmith.errors import UsageError
from opsmith.executors import get_executor
from opsmith.executors.cluster import _block_hangup, _check_address, _hide_keys, _hush_ray
from opsmith.executors.local import LocalExecutor
from opsmith.learn import loop
from opsmith.learn.identity import run_info
from opsmith.models.roles import RoleModels
from opsmith.running.nursery import Nursery
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith_lab.models.embedded import EmbeddedModel

TASKS = load_tasks(["bmm_0"])


def entered(address, **more):
    with get_executor(Settings(executor="ray", ray_address=address, **more), TASKS):
        pytest.fail("there is no cluster")


def test_the_default_is_this_machine():
    executor = get_executor(Settings(), TASKS)
    assert isinstance(executor, LocalExecutor)
    assert isinstance(executor.make_models().own, EmbeddedModel)


def test_an_address_without_ray_is_refused():
    with pytest.raises(UsageError, match="--ray-address: given with the local executor; expected none; try"):
        get_executor(Settings(ray_address="auto"), TASKS)


def test_the_extra_is_named_when_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"try: pip install 'opsmith\[ray\]'"):
        entered(None)


@pytest.mark.parametrize(
    "address", ["nonsense", "ray://127.0.0.1:10001", "127.0.0.1:0", "127.0.0.1:99999", ":6379", ""]
)
def test_an_address_that_is_none_is_refused(address):
    pytest.importorskip("ray", reason="the ray extra is not installed")
    with pytest.raises(UsageError, match="expected auto or HOST:PORT"):
        entered(address)


def test_a_port_that_nobody_listens_to_is_said_at_once():
    pytest.importorskip("ray", reason="the ray extra is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        refusal = pytest.raises(UsageError, match=f"given {address}; expected the head of a Ray cluster .*refused")
        with lasts_at_most(20.0, time.monotonic), refusal:  # importing Ray is in it
            entered(address)


def test_a_server_of_another_kind_is_no_cluster():
    pytest.importorskip("ray", reason="the ray extra is not installed")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(UsageError, match="what answers there is no Ray"):
            entered(f"127.0.0.1:{server.server_port}")
        server.shutdown()


def test_where_ray_speaks_tls_whoever_accepts_is_enough(monkeypatch):
    monkeypatch.setenv("RAY_USE_TLS", "1")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # as a TLS server is to a greeting in plain text
        _check_address(f"127.0.0.1:{silent.getsockname()[1]}")


def test_ray_is_not_told_the_command_line():
    utils = pytest.importorskip("ray._private.utils", reason="the ray extra is not installed")
    before = utils.get_entrypoint_name
    assert "python" in before(), "Ray asks here"
    with _hush_ray():
        assert utils.get_entrypoint_name() == "opsmith"
    assert utils.get_entrypoint_name is before


def test_a_target_of_this_process_alone_is_refused(monkeypatch):
    pytest.importorskip("ray", reason="the ray extra is not installed")
    register()
    settings = Settings(executor="ray")
    with pytest.raises(UsageError, match=f"target '{TINY.name}': known in this process only"):
        get_executor(settings, [tiny_task("sum_0", "x y +")]).__enter__()


def test_the_executor_is_no_part_of_a_runs_name():
    target = get_target("step")
    model = EmbeddedModel(target)
    settings = [Settings(), Settings(executor="ray", ray_address="head:6379", workers=7)]
    assert len({run_info(TASKS, (), None, RoleModels(model), target, one).id for one in settings}) == 1


def test_what_no_worker_may_know_is_hidden_while_rays_processes_start(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("GH_PAT", "ghp-1")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "of the cluster")
    before = dict(os.environ)
    with _hide_keys():
        assert not {"OPENAI_API_KEY", "GH_PAT"} & os.environ.keys()
        assert os.environ["RAY_AUTH_TOKEN"] == "of the cluster"
        assert "PATH" in os.environ
    assert dict(os.environ) == before


@hears_hangup
def test_rays_processes_outlive_a_terminal_that_is_closed():
    code = "import signal; signal.raise_signal(signal.SIGHUP)"
    with _block_hangup():
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGHUP


def test_a_run_that_is_over_starts_no_workers(tmp_path, monkeypatch):
    with Store.open(tmp_path / "runs") as store:
        whole = loop.improve(tiny_run.TASKS, tiny_run.TinyModel(), tiny_run.SETTINGS, store, judge=tiny_run.InProcess())
        monkeypatch.setattr(Nursery, "_spawn_nursery", lambda _: pytest.fail("workers were started"))
        assert api.improve(tiny_run.TASKS, tiny_run.TinyModel(), tiny_run.SETTINGS, store) == whole
