"""A run that is logged in MLflow, to be killed: `python tracked_run.py STORE PAUSE_S`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.bridges.trackers import track_run
from opsmith.learn.loop import improve
from opsmith.store import Store

if __name__ == "__main__":
    with Store.open(sys.argv[1]) as store, track_run("mlflow", store, lambda event: None) as on_event:
        improve(TASKS, TinyModel(float(sys.argv[2])), SETTINGS, store, judge=InProcess(), on_event=on_event)
