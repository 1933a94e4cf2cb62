"""Right programs of a run are profiled, and what is said of them is stored before an agent is shown it.

What is stored of a candidate of a task is not made again, in this session or a later one.
"""

from __future__ import annotations

from opsmith.learn.session import RunSession
from opsmith.learn.speeds import RightProgram
from opsmith.profiling.profiler import ProfileSource, ProfileSubject
from opsmith.records import Candidate, ProfileReport
from opsmith.store import Row
from opsmith.store.measurements import Profile, profile_rows


async def fetch_profiles(
    session: RunSession, source: ProfileSource, program: RightProgram
) -> tuple[ProfileReport, ...]:
    """What profilers say of a program: as it is stored, else made now and stored. `program.sample` "": the run began
    with it.

    Raises StoreError, and UsageError for a profiler that there is not.
    """
    name = Candidate(program.source).id
    stored = session.store.read_profiles(session.run)
    reports = [profile.report for profile in stored if (profile.task, profile.candidate) == (program.task.id, name)]
    if reports:
        return tuple(reports)
    for lack in source.explain_lacks(program.task):
        session.warn_once(lack)
    subject = _make_subject(session, program, name)
    fresh = await source.make_profiles(subject, session.warn_once)
    _store_reports(session, program, subject, fresh)
    return tuple(fresh)


def _make_subject(session: RunSession, program: RightProgram, name: str) -> ProfileSubject:
    """The program with what was measured of it, each shape set once: the last time, in the best grade."""
    speeds = session.store.read_speeds(session.run, program.task.id)
    reports = [speed.report for speed in speeds if speed.report.measurement.program == name]
    latest = {(report.measurement.shape_set, report.measurement.objective): report for report in reports}
    return ProfileSubject(program.task, program.source, tuple(latest.values()))


def _store_reports(
    session: RunSession, program: RightProgram, subject: ProfileSubject, reports: list[ProfileReport]
) -> None:
    """All together: a kill leaves all of them or none."""
    device = subject.speeds[0].measurement.device if subject.speeds else ""
    name = Candidate(program.source).id
    rows: list[Row] = []
    for report in reports:
        profile = Profile(program.sample, name, device, report.kind, report.media, report.body, program.task.id)
        rows += profile_rows(session.run, profile)
    if rows:
        session.store.put(rows).result()
