"""The coach's core: outcomes in, a choice out."""

import random
from itertools import pairwise

import pytest

from toolwire.telemetry.coach import Tally, advise, choose, drawn, wilson

FORMATS = ("hermes", "forge_xml", "pythonic")


@pytest.mark.parametrize(
    ("good", "tried", "low", "high"),
    [  # by the formula, with z = 1.959964
        (0, 0, 0.0, 1.0),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (81, 263, 0.2553, 0.3662),  # an example of Newcombe, Statistics in Medicine 17 (1998)
        (1, 29, 0.0061, 0.1718),  # another
    ],
)
def test_intervals_are_wilsons(good: int, tried: int, low: float, high: float) -> None:
    assert wilson(good, tried) == pytest.approx((low, high), abs=5e-5)


def test_more_confidence_is_a_wider_interval() -> None:
    widths = [high - low for low, high in (wilson(30, 40, c) for c in (0.5, 0.8, 0.95, 0.99))]
    assert widths == sorted(widths)
    narrower = [high - low for low, high in (wilson(n * 3, n * 4) for n in (1, 10, 100, 1000))]
    assert all(a > b for a, b in pairwise(narrower))


def test_what_cannot_be_counted_is_refused() -> None:
    with pytest.raises(ValueError, match="3 of 2"):
        Tally("x", 2, 3)
    with pytest.raises(ValueError, match="no format"):
        advise([])


def test_the_first_is_preferred_where_nothing_is_known() -> None:
    advice = advise([Tally(name) for name in FORMATS])
    assert (advice.format, advice.settled, advice.reason) == ("hermes", False, "Nothing is known yet.")
    assert advise([Tally("hermes", 1, 0), Tally("forge_xml")]).format == "forge_xml"
    assert advise([Tally("hermes", 9, 1)]).settled


def test_it_settles_when_the_intervals_part() -> None:
    near = advise([Tally("hermes", 40, 36), Tally("forge_xml", 40, 32)])
    assert (near.format, near.settled) == ("hermes", False)
    apart = advise([Tally("hermes", 40, 38), Tally("forge_xml", 40, 20)])
    assert (apart.format, apart.settled) == ("hermes", True)
    assert "at least 83%" in apart.reason
    assert "at most 65%" in apart.reason
    long = advise([Tally("hermes", 200, 180), Tally("forge_xml", 200, 179)])
    assert (long.settled, long.reason) == (True, "Settled after 400 outcomes; forge_xml may be as good.")
    assert not advise([Tally("hermes", 200, 180), Tally("forge_xml", 200, 179)], enough=500).settled


def test_it_changes_its_mind_with_the_evidence() -> None:
    before = [Tally("hermes", 40, 38), Tally("forge_xml", 40, 20)]
    assert advise(before).settled
    after = [Tally("hermes", 60, 40), Tally("forge_xml", 40, 20)]
    assert not advise(after).settled


def test_only_what_may_be_as_good_is_explored() -> None:
    tallies = [Tally("hermes", 40, 37), Tally("forge_xml", 5, 4), Tally("pythonic", 40, 2)]
    assert {choose(tallies, at / 100).format for at in range(20)} == {"forge_xml"}
    assert {choose(tallies, at / 100).format for at in range(20, 100)} == {"hermes"}
    assert choose(tallies, 0.0).exploring
    assert "may be as good as hermes" in choose(tallies, 0.0).reason
    assert not choose(tallies, 0.5).exploring
    assert choose([Tally("hermes", 40, 38), Tally("forge_xml", 40, 20)], 0.0).format == "hermes"


def test_draws_are_even_and_depend_on_seed_and_place_alone() -> None:
    draws = [drawn(7, "run", at) for at in range(2_000)]
    assert draws == [drawn(7, "run", at) for at in range(2_000)]
    assert draws != [drawn(8, "run", at) for at in range(2_000)]
    assert all(0 <= draw < 1 for draw in draws)
    assert 0.17 < sum(draw < 0.2 for draw in draws) / 2_000 < 0.23


def played(rates: dict[str, float], turns: int, seed: int) -> tuple[list[Tally], list[str]]:
    """A coach at work: the outcomes of each format are scripted, and it sees those of what it chooses."""
    chance = random.Random(seed)
    script = {name: [chance.random() < rate for _ in range(turns)] for name, rate in rates.items()}
    tallies = {name: Tally(name) for name in rates}
    chosen: list[str] = []
    for turn in range(turns):
        name = choose(list(tallies.values()), drawn(seed, "run", turn)).format
        tallies[name] = tallies[name].and_one(good=script[name][tallies[name].tried])
        chosen.append(name)
    return list(tallies.values()), chosen


@pytest.mark.mission("F48")
def test_of_two_hundred_outcomes_it_picks_the_best_format() -> None:
    chance = random.Random(1)
    rates = {"hermes": 0.62, "forge_xml": 0.78, "pythonic": 0.93}
    outcomes = [(name, chance.random() < rate) for name, rate in rates.items() for _ in range(67)][:200]
    tallies = {name: Tally(name) for name in rates}
    for name, good in outcomes:
        tallies[name] = tallies[name].and_one(good=good)
    best = max(tallies.values(), key=lambda one: one.good / one.tried)
    advice = advise(list(tallies.values()))
    assert advice.format == best.format == "pythonic"
    assert advice.settled
    assert choose(list(tallies.values()), 0.0).format == "pythonic"


def test_it_finds_the_best_by_itself_whichever_it_is() -> None:
    right = 0
    for seed in range(30):
        best = FORMATS[seed % 3]
        tallies, _ = played({name: 0.92 if name == best else 0.55 for name in FORMATS}, 200, seed)
        right += advise(tallies).format == best
    assert right >= 28


@pytest.mark.mission("G21")
def test_it_explores_a_fifth_and_then_no_more() -> None:
    _, chosen = played({"hermes": 0.95, "forge_xml": 0.4}, 300, 3)
    explored = [turn for turn, name in enumerate(chosen) if name == "forge_xml"]
    assert explored
    assert explored[-1] < 150
    assert len(explored) <= 0.35 * (explored[-1] + 1)
    assert played({"hermes": 0.95, "forge_xml": 0.4}, 300, 3)[1] == chosen
