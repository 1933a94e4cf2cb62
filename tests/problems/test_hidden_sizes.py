"""Hidden sizes belong to a text, are none that the file states, and reach beyond those."""

from problems.examples import RMS_NORM, SOFTMAX, read_example

from opsmith.problems.hidden_sizes import GROWTH, MOST_NUMBERS, choose_hidden_sizes
from opsmith.problems.native import NativeData
from opsmith.problems.shape_sets import has_whole_dims

TEXTS = [f"program {number}" for number in range(20)]


def test_equal_texts_have_equal_sizes_and_others_have_others() -> None:
    problem = read_example(RMS_NORM)
    chosen = [choose_hidden_sizes(problem, text, lambda sizes: True) for text in [*TEXTS, *TEXTS]]
    assert chosen[: len(TEXTS)] == chosen[len(TEXTS) :]
    assert len({str(sizes) for sizes in chosen}) == len(TEXTS)


def test_every_dim_is_once_larger_than_at_any_stated_set() -> None:
    problem = read_example(RMS_NORM)
    for text in TEXTS:
        chosen = choose_hidden_sizes(problem, text, lambda sizes: True)
        assert len(chosen) == 5
        assert all(max(sizes[name] for sizes in chosen) >= GROWTH * 512 for name in ("M", "N"))
        assert max(chosen[0].values()) <= 3
        assert all(size % 2 for size in chosen[1].values())
        assert all(problem.count_numbers(sizes) <= MOST_NUMBERS for sizes in chosen)
        assert not any(sizes == {"M": 7, "N": 129} for sizes in chosen)


def test_every_dim_is_whole() -> None:
    problem = read_example(SOFTMAX, ("shape: [M, N], data", "shape: [M, 2, N/2], data"), ("N: 129", "N: 128"))
    for text in TEXTS:
        chosen = choose_hidden_sizes(problem, text, lambda sizes: True)
        assert len(chosen) == 5
        assert all(has_whole_dims(problem, sizes) for sizes in chosen)


def test_sizes_at_which_the_reference_fails_are_drawn_again() -> None:
    data = NativeData(read_example(SOFTMAX, ("torch.softmax(x, -1)", "torch.softmax(x, -1) * (1 // (x.shape[0] > 2))")))
    draws = data.draw_hidden("a program")
    assert draws
    assert all(draw.declared.sizes["M"] > 2 for draw in draws)
    assert all(draw.label.startswith("hidden sizes M = ") for draw in draws)
    assert [draw.overrides for draw in draws] == [draw.overrides for draw in data.draw_hidden("a program")]
