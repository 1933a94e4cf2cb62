"""The plan book is a pure function of stored rows; here without a store."""

from planned_target import TINY_PLANNED, make_split, planned_task, register_planned

from opsmith.learn.plans import PlanFacts, PlanForest, PlanState, grow_forest
from opsmith.records import Task
from opsmith.settings import Planning
from opsmith.store.plans import CONTRACT, StoredPlan

register_planned()

FIRST, OTHER = {"s": "x y +", "out": "s z *"}, {"t": "y z *", "out": "x t +"}
TASK = planned_task("poly", "x y + z *", [FIRST, OTHER])
SETTINGS = Planning(plan="static", plan_after=2, splits=2, depth=2, contract_rounds=1)


def plan(task: Task, number: int, round: int, nodes: dict[str, str] | None = FIRST, planner: str = "static",
         changed: str = "") -> StoredPlan:  # fmt: skip
    if nodes is None:
        return StoredPlan(task.id, number, planner, "", round, None, "none is left", changed)
    split = make_split(nodes, {})
    children = TINY_PLANNED.make_children(task, split)
    return StoredPlan(task.id, number, planner, "", round, split, "", changed, children)


def grow(plans: list[StoredPlan], *rounds: str, stuck: bool = False, solved: tuple[Task, ...] = (),
         joined: bool = False, compared: str = "", tried: tuple[tuple[str, int], ...] = ()) -> PlanForest:  # fmt: skip
    ended = tuple((number, frozenset(names.split())) for number, names in enumerate(rounds))
    digests = frozenset(task.digest for task in solved)
    facts = PlanFacts(tuple(plans), ended, digests, digests if joined else frozenset(),
                      compared=frozenset(compared.split()), tried_joins=frozenset(tried))  # fmt: skip
    return grow_forest([TASK], facts, SETTINGS, stuck)


def describe(forest: PlanForest) -> tuple[dict[str, str], list[str], list[str]]:
    """States by id, ids of the frontier, what is to be planned."""
    states = {node.task.id: node.state.value for tree in forest.trees for node in tree.list_all()}
    steps = [f"{step.task.id} {step.number} {step.changed}".strip() for step in forest.steps]
    return states, [task.id for task in forest.frontier], steps


def test_a_task_is_split_after_the_rounds_that_it_may_stay_unsolved_or_when_the_run_would_end() -> None:
    assert describe(grow([], "poly")) == ({"poly": "unsplit"}, ["poly"], [])
    assert describe(grow([], "poly", "poly"))[2] == ["poly 0"]
    assert describe(grow([], "poly", stuck=True))[2] == ["poly 0"]
    assert describe(grow([], "poly", "poly", solved=(TASK,))) == ({"poly": "solved"}, [], [])


def test_the_children_stand_in_the_round_beside_their_task_which_has_half_of_its_samples() -> None:
    first = plan(TASK, 0, 2)
    states, frontier, steps = describe(grow([first], "poly", "poly"))
    assert states == {"poly": "open", "poly.s": "open", "poly.out": "open"}
    assert (frontier, steps) == (["poly.s", "poly.out", "poly"], [])
    states, frontier, _ = describe(grow([first], "poly", "poly", solved=first.children[:1]))
    assert (states["poly.s"], frontier) == ("solved", ["poly.out", "poly"])
    assert grow([first], "poly", "poly").share_samples(7) == {"poly": 4}
    assert grow([], "poly").share_samples(7) == {}


def test_an_unmet_contract_is_renegotiated_once_then_the_child_is_split_then_the_task_otherwise() -> None:
    rounds, plans = ["poly", "poly", "poly.s poly.out"], [plan(TASK, 0, 2)]
    solved = plans[0].children[1:]
    assert describe(grow(plans, *rounds, solved=solved))[2] == ["poly 1 s"], "the contract of s"
    plans.append(plan(TASK, 1, 3, None, CONTRACT, "s"))
    assert describe(grow(plans, *rounds, solved=solved))[2] == ["poly.s 0"], "it has no other: s is split itself"
    child = plans[0].children[0]
    plans.append(plan(child, 0, 3, None))
    states, frontier, steps = describe(grow(plans, *rounds, solved=solved))
    assert (states["poly.s"], frontier, steps) == ("given up", ["poly.s", "poly"], []), "it is sampled on"
    assert describe(grow(plans, *rounds, stuck=True, solved=solved))[2] == ["poly 2"], "the task is split otherwise"
    assert describe(grow(plans, *rounds, *["poly.s"] * 3, solved=solved))[2] == ["poly 2"], "or its patience is out"
    plans.append(plan(TASK, 2, 3, OTHER))
    states, frontier, steps = describe(grow(plans, *rounds))
    assert (frontier, steps) == (["poly.t", "poly.out", "poly"], [])


def test_a_child_whose_programs_were_compared_is_split_before_its_contract_is_renegotiated() -> None:
    rounds, plans = ["poly", "poly", "poly.s poly.out"], [plan(TASK, 0, 2)]
    solved = plans[0].children[1:]
    assert describe(grow(plans, *rounds, solved=solved, compared="poly.s"))[2] == ["poly.s 0"]
    plans.append(plan(plans[0].children[0], 0, 3, None))
    assert describe(grow(plans, *rounds, solved=solved, compared="poly.s"))[2] == ["poly 1 s"], "it has no split"


def test_a_renegotiated_contract_has_its_rounds_again() -> None:
    changed = plan(TASK, 1, 3, {"s": "y x +", "out": "s z *"}, CONTRACT, "s")
    states, frontier, steps = describe(grow([plan(TASK, 0, 2), changed], "poly", "poly", "poly.s poly.out"))
    assert (states["poly.s"], states["poly.out"], steps) == ("renegotiated", "open", [])
    assert frontier == ["poly.s", "poly.out", "poly"]


def test_a_task_whose_splits_are_used_up_is_sampled_itself_again() -> None:
    states, frontier, steps = describe(grow([plan(TASK, 0, 1, None)], "poly"))
    assert (states, frontier, steps) == ({"poly": "given up"}, ["poly"], [])


def test_solved_children_are_joined_once_and_a_wrong_join_changes_the_split() -> None:
    first = plan(TASK, 0, 1)
    forest = grow([first], "poly", solved=first.children)
    assert [node.task.id for node in forest.joins] == ["poly"]
    assert describe(forest)[1:] == ([], [])
    tree = grow([first], "poly", "poly", solved=first.children, tried=(("poly", 0),)).trees[0]
    assert (tree.state, tree.step is not None and tree.step.number) == (PlanState.JOIN_FAILED, 1)
    states, _, _ = describe(grow([first], "poly", "poly", solved=(TASK, *first.children), joined=True))
    assert states["poly"] == "joined"


def test_no_child_is_split_deeper_than_the_tree_may_be() -> None:
    top = plan(TASK, 0, 0)
    inner = top.children[0]
    deeper = plan(inner, 0, 1, {"a": "x y +", "s": "a a -"})
    unmet = [top, plan(TASK, 1, 1, None, CONTRACT, "s"), deeper, plan(inner, 1, 2, None, CONTRACT, "a")]
    rounds = ("poly.s poly.out", "poly.s.a poly.s.s", "poly.s.a poly.s.s")
    assert describe(grow(unmet, *rounds, solved=top.children[1:]))[1:] == (["poly.s.a", "poly.s.s", "poly"], []), (
        "depth 2"
    )
    states, _, steps = describe(grow(unmet, *rounds, stuck=True, solved=top.children[1:]))
    assert (states["poly.s.a"], steps) == ("given up", ["poly.s 2"]), "s is split otherwise"
