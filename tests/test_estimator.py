"""`PointerEstimator` with scikit-learn's tools: clone, cross-validation, search, pickle."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score

import ptrnet
from ptrnet.errors import InputError
from ptrnet.metrics.ranking import ndcg

FAST = {"hidden_size": 24, "steps": 60, "batch_size": 32, "learning_rate": 1e-2, "random_state": 1}
FAST["recipe"] = {"ensemble": 1}


def largest_first(count, seed=0):
    """Instances of 2 or 3 numbers, and their indices from the largest number to the smallest."""
    rng = np.random.default_rng(seed)
    X = [rng.random((n, 1)) for n in rng.integers(2, 4, count)]
    return X, [np.argsort(-x[:, 0]) for x in X]


def test_fit_predict_and_score_agree_with_solver():
    X, y = largest_first(400)
    test_X, test_y = largest_first(60, seed=1)
    estimator = ptrnet.PointerEstimator("permutation", **FAST)
    with pytest.raises(NotFittedError):
        estimator.predict(test_X)
    assert estimator.fit(X, y) is estimator and estimator.n_features_in_ == 1
    answers = estimator.predict(test_X)
    assert all(sorted(a) == list(range(len(x))) for a, x in zip(answers, test_X, strict=True))
    expected = estimator.solver_.evaluate(list(zip(test_X, test_y, strict=True)))["kendall_tau"]
    assert estimator.score(test_X, test_y) == pytest.approx(expected["value"])
    assert expected["value"] > 0.5
    again = pickle.loads(pickle.dumps(estimator)).predict(test_X)
    assert all((a == b).all() for a, b in zip(answers, again, strict=True))


def test_clone_keeps_parameters():
    estimator = ptrnet.PointerEstimator("subset", decoder=ptrnet.Beam(3), recipe={"clip": 1.0})
    copy = clone(estimator.set_params(steps=7))
    assert copy.get_params() == estimator.get_params() and copy.steps == 7
    assert not hasattr(copy, "solver_")


def test_codes_are_categories_as_in_fit():
    X = [[{"purpose": purpose} for purpose in (1, 10, 2 + k % 2)] for k in range(20)]
    y = [k % 3 for k in range(20)]
    options = {**FAST, "steps": 2}
    estimator = ptrnet.PointerEstimator("choice", categories=["purpose"], **options).fit(X, y)
    assert estimator.solver_.task.categories == (("1", "10", "2", "3"),)
    assert clone(estimator).categories == ["purpose"]


def test_grid_search_works():
    X, y = largest_first(60)
    options = {**FAST, "steps": 5}
    grid = {"hidden_size": [8, 24]}
    search = GridSearchCV(ptrnet.PointerEstimator("permutation", **options), grid, cv=2)
    assert search.fit(X, y).best_params_["hidden_size"] in (8, 24)


def test_grades_are_scored_by_ndcg_of_whole_sets():
    """Grades have ties and depend on the first of two numbers. Sets have 2 to 5 elements."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 2)) for n in rng.integers(2, 6, 120)]
    y = [np.clip(np.round(x[:, 0]), 0, 2) for x in X]
    estimator = ptrnet.PointerEstimator("grades", **{**FAST, "steps": 20})
    scores = cross_val_score(estimator, X, y, cv=2)
    orders = [rng.permutation(len(x)) for x in X]
    by_chance = np.mean([ndcg(grades, order, 10) for grades, order in zip(y, orders, strict=True)])
    assert len(scores) == 2 and all(by_chance < s <= 1 for s in scores)
    with pytest.raises(InputError, match="y: answer 0: "):
        estimator.fit(X, y).score(X, y[1:] + y[:1])
    probabilities = estimator.predict_proba(X[:3])
    assert [p.shape for p in probabilities] == [(len(x),) for x in X[:3]]
    assert all(p.sum() == pytest.approx(1) for p in probabilities)


def test_choices_are_scored_by_accuracy():
    rng = np.random.default_rng(1)
    X = list(rng.normal(size=(200, 3, 1)))
    y = [[int(x[:, 0].argmax())] for x in X]
    estimator = ptrnet.PointerEstimator("choice", **FAST).fit(X, y)
    right = [a.tolist() == b for a, b in zip(estimator.predict(X), y, strict=True)]
    assert estimator.score(X, y) == np.mean(right) > 0.8


def test_cross_val_predict_works_with_mixed_sizes():
    X, y = largest_first(60)
    estimator = ptrnet.PointerEstimator("permutation", **{**FAST, "steps": 5})
    answers = cross_val_predict(estimator, X, y, cv=2)
    assert [len(answer) for answer in answers] == [len(x) for x in X]


def test_arrays_of_equal_sizes_are_accepted():
    X = np.random.default_rng(0).random((64, 3, 2))
    y = np.argsort(X[..., 0], 1)
    estimator = ptrnet.PointerEstimator(**{**FAST, "steps": 5}).fit(X, y)
    assert len(estimator.predict(X[:1])) == 1 and len(estimator.predict(X)) == 64


def test_invalid_parameters_and_answers_are_refused():
    X, y = largest_first(20)
    with pytest.raises(InputError, match="hidden_size"):
        ptrnet.PointerEstimator(hidden_size=0).fit(X, y)
    with pytest.raises(InputError, match="got 19"):
        ptrnet.PointerEstimator(**{**FAST, "steps": 2}).fit(X, y).score(X, y[1:])


def test_single_instance_and_repeated_parameters_are_refused(tmp_path):
    pandas = pytest.importorskip("pandas")
    offers = [[{"x": k, "y": -k} for k in range(3)]] * 4
    estimator = ptrnet.PointerEstimator(hidden_size=8, steps=2, recipe={"valid_batches": 0})
    estimator.fit(offers, [[0, 1, 2]] * 4)
    assert len(estimator.predict(offers)) == 4
    for one in (offers[0], pandas.DataFrame(offers[0])):
        with pytest.raises(InputError, match="X: expected a list of instances, got one"):
            estimator.predict(one)
        with pytest.raises(InputError, match="X: expected a list of instances, got one"):
            estimator.score(one, [[0]] * 3)
        with pytest.raises(InputError, match="X: expected a list of instances, got one"):
            clone(estimator).fit(one, [[0]] * 3)
    for key in ("steps", "hidden_size", "kind"):
        twice = ptrnet.PointerEstimator(steps=2, recipe={key: 3})
        with pytest.raises(InputError, match=f"recipe: {key}: set the estimator's own"):
            twice.fit(offers, [[0, 1, 2]] * 4)


def test_answers_may_be_arrays_or_frames_and_are_checked():
    """The rows of a frame are answers, not its columns. A list of numbers is not one instance."""
    frame = pytest.importorskip("pandas").DataFrame
    X = np.random.default_rng(0).random((32, 3, 1))
    y = np.argsort(X[:, :, 0], 1)
    options = {
        **FAST,
        "hidden_size": np.int64(8),
        "steps": np.int64(3),
        "random_state": np.int64(1),
    }
    estimator = ptrnet.PointerEstimator("permutation", **options).fit(X, y)
    answers = np.stack(estimator.predict(X))
    assert estimator.score(X, answers) == estimator.score(X, frame(answers)) == 1
    assert cross_val_score(estimator, X, frame(y), cv=2).shape == (2,)
    for wrong in (answers + 1, answers.astype(str), answers[..., None], answers[:, :2]):
        with pytest.raises(InputError, match="y: answer 0: "):
            estimator.score(X, wrong)
    with pytest.raises(InputError, match="as many outputs as inputs"):
        estimator.score(X, y[:-1])
    with pytest.raises(InputError, match="expected at least one instance"):
        estimator.score([], [])
    assert [a.tolist() for a in estimator.predict([[3], [1]])] == [[0], [0]]
    rows = [[3.0, 1, 2], [5, 4, 6]]
    assert len(estimator.predict(rows)) == len(estimator.solver_.solve(rows)) == 2
    with pytest.raises(InputError, match="decoder: expected one such as"):
        estimator.set_params(decoder="beam").predict(X)


def test_weights_of_sets_are_those_of_fit():
    rng = np.random.default_rng(0)
    X = rng.random((60, 4))
    y, weights = X.argmax(1), rng.integers(0, 3, 60)
    options = {**FAST, "steps": 5}
    weighted = ptrnet.PointerEstimator("choice", **options).fit(X, y, sample_weight=weights)
    ours = weighted.solver_.model.state_dict()
    given = {"hidden_size": 24, "steps": 5, "batch_size": 32, "learning_rate": 1e-2, "seed": 1}
    pairs = [*zip(X, y[:, None], strict=True)]
    theirs = ptrnet.fit(pairs, "choice", weight=weights, ensemble=1, **given).model.state_dict()
    assert all(ours[name].equal(theirs[name]) for name in theirs)
    right = [a.item() == b for a, b in zip(weighted.predict(X), y, strict=True)]
    expected = np.repeat(right, weights).mean()
    assert weighted.score(X, y, sample_weight=weights) == pytest.approx(expected)
    for wrong, complaint in (
        (weights[1:], "sample_weight: expected a number for each of 60 sets, got 59"),
        (np.ones((60, 2)), "sample_weight: expected a number for each of 60 sets, got shape"),
        (-weights, "X: instance .: sample_weight: expected 0, or a number from"),
    ):
        with pytest.raises(InputError, match=complaint):
            weighted.fit(X, y, sample_weight=wrong)
        with pytest.raises(InputError, match=complaint):
            weighted.score(X, y, sample_weight=wrong)


def test_random_state_may_draw_the_seed():
    X, y = largest_first(40)

    def weights(state):
        options = {**FAST, "steps": 2, "random_state": state}
        estimator = ptrnet.PointerEstimator("permutation", **options).fit(X, y)
        return estimator.solver_.model.state_dict()["head.0.weight"]

    state = np.random.RandomState(3)
    first, second = weights(state), weights(state)
    assert not first.equal(second) and first.equal(weights(np.random.RandomState(3)))
    assert weights(None).equal(weights(1)) and not weights(1).equal(weights(2))
    with pytest.raises(InputError, match="random_state: expected a whole number"):
        weights("1")


# The checks of scikit-learn have tables: a row for each instance, a column for each feature, and
# classes as y. Here a row is a set of numbers, and y is the position of one of these numbers.
SETS_DIFFER = "answers and probabilities are arrays of dtype object, because sets differ in size"
NO_POSITION = "y has class 2 (or 1), but the row has only two numbers (or one)"
FEATURES = "n_features_in_ counts the features of an element, and a set may have any size"
EXPECTED_FAILURES = {
    "check_estimators_pickle": SETS_DIFFER,
    "check_methods_sample_order_invariance": SETS_DIFFER,
    "check_methods_subset_invariance": SETS_DIFFER,
    "check_fit_idempotent": SETS_DIFFER,
    "check_sample_weight_equivalence_on_dense_data": SETS_DIFFER
    + ", and other batches train another network",
    "check_estimators_overwrite_params": NO_POSITION,
    "check_estimators_fit_returns_self": NO_POSITION,
    "check_readonly_memmap_input": NO_POSITION,
    "check_sample_weights_not_an_array": NO_POSITION,
    "check_sample_weights_shape": NO_POSITION,
    "check_sample_weights_not_overwritten": NO_POSITION,
    "check_fit2d_1feature": NO_POSITION,
    "check_n_features_in": FEATURES,
    "check_n_features_in_after_fitting": FEATURES,
    "check_sample_weights_pandas_series": "X is a frame, which is one set and not many",
    "check_dtype_object": "an X of dtype object holds sets of different sizes, and a dictionary in "
    "it is an element with named fields, so the error is not that of an array",
}


def test_the_checks_of_scikit_learn_pass_except_those_that_need_a_table():
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    options = {**FAST, "hidden_size": 8, "steps": 2, "recipe": {"ensemble": 1, "valid_batches": 0}}
    estimator = ptrnet.PointerEstimator("choice", **options)
    results = checks.check_estimator(
        estimator, expected_failed_checks=EXPECTED_FAILURES, on_fail=None, on_skip=None
    )
    outcomes = {}
    for result in results:
        outcomes.setdefault(result["status"], set()).add(result["check_name"])
    assert not outcomes.get("failed")
    assert outcomes["xfail"] == set(EXPECTED_FAILURES)
    assert len(outcomes["passed"]) > 30
    assert outcomes.get("skipped", set()) <= {"check_array_api_input"}


def test_groups_are_held_out_as_a_whole():
    """The networks' validation parts have whole groups, so the weights are those of `fit`."""
    X, y = largest_first(40)
    fast = {**FAST, "steps": 10}
    groups = [f"person {k // 8}" for k in range(40)]
    by_group = ptrnet.PointerEstimator("permutation", **fast).fit(X, y, groups=groups)
    alone = ptrnet.PointerEstimator("permutation", **fast).fit(X, y)
    options = {k: v for k, v in fast.items() if k not in ("random_state", "recipe")}
    expected = ptrnet.fit(X, y, "permutation", group=groups, seed=1, ensemble=1, **options)
    states = [m.model.state_dict() for m in (by_group.solver_, expected, alone.solver_)]
    assert all(states[0][name].equal(value) for name, value in states[1].items())
    assert not all(states[0][name].equal(value) for name, value in states[2].items())
    with pytest.raises(InputError, match="a group for each of the 40 examples, got 3"):
        by_group.fit(X, y, groups=groups[:3])


# Frames


QUICK = {"steps": 20, "hidden_size": 8, "recipe": {"ensemble": 1, "trees": 0}}


def choices_in_rows(sets=60, seed=0):
    """A shuffled frame of choices among 2 to 4 offers; its index is not the number of a row."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 5, sets)
    order = np.repeat(np.arange(sets), sizes)
    frame = pandas.DataFrame({"order": order, "person": order // 3})
    frame["price"] = rng.normal(size=len(order)).round(3)
    frame["colour"] = rng.choice(["red", "green"], len(order))
    cheapest = frame.groupby("order")["price"].transform("min")
    frame["bought"] = (frame["price"] == cheapest).astype(int)
    frame.index = [f"row {k}" for k in range(len(order))]
    return frame.sample(frac=1, random_state=seed)


def of_offers(**changes):
    names = {"set_id": "order", "chosen": "bought", "group": "person"}
    return ptrnet.PointerEstimator(**{**QUICK, **names, **changes})


def test_the_names_of_columns_are_those_of_the_command_line():
    from ptrnet.data.columns import TrainingColumns
    from ptrnet.settings import options_of

    parameters = ptrnet.PointerEstimator().get_params()
    assert options_of(TrainingColumns).keys() <= parameters.keys()
    copy = clone(of_offers(alternatives=["train", "car"]))
    assert (copy.set_id, copy.group, copy.alternatives) == ("order", "person", ["train", "car"])
    with pytest.raises(TypeError, match=r"argument 'setid'; other settings .* `recipe`"):
        ptrnet.PointerEstimator(setid="order")


def test_results_are_series_in_the_order_of_the_rows():
    frame = choices_in_rows()
    before = frame.copy()
    estimator = of_offers().fit(frame)
    assert estimator.feature_names_in_.tolist() == ["price", "colour"]
    assert estimator.n_features_in_ == 2 and frame.equals(before)
    new = frame.drop(columns="bought")
    chosen, p, scores = (getattr(estimator, m)(new) for m in ("predict", "predict_proba", "scores"))
    assert all(values.index.equals(frame.index) for values in (chosen, p, scores))
    assert p.equals(estimator.solver_.predict_proba(new, set_id="order"))
    assert scores.equals(estimator.solver_.scores(new, set_id="order"))
    for _, rows in new.groupby("order"):
        assert p[rows.index].sum() == pytest.approx(1)
        assert chosen[rows.index].tolist() == (p[rows.index] == p[rows.index].max()).tolist()
    expected = estimator.solver_.evaluate(frame, set_id="order", chosen="bought", group="person")[
        "accuracy"
    ]
    assert estimator.score(frame) == pytest.approx(expected["value"])
    again = pickle.loads(pickle.dumps(estimator))
    assert again.predict_proba(new).equals(p)
    part = new[new["order"] < 20].sort_index()
    assert np.allclose(again.predict_proba(part), p[part.index], atol=1e-6)


def test_polars_frames_give_the_same_numbers():
    polars = pytest.importorskip("polars")
    frame = choices_in_rows()
    estimator = of_offers().fit(frame)
    theirs = of_offers().fit(polars.DataFrame(frame.to_dict("list")))
    p = theirs.predict_proba(polars.DataFrame(frame.to_dict("list")))
    assert isinstance(p, polars.Series)
    assert p.to_list() == estimator.predict_proba(frame).tolist()
    y = polars.Series(frame["bought"].to_list())
    new = polars.DataFrame(frame.drop(columns="bought").to_dict("list"))
    assert theirs.score(new, y) == estimator.score(frame)


def test_y_weights_and_groups_of_rows_are_those_of_named_columns():
    frame = choices_in_rows()
    frame["w"] = frame["order"] % 3 + 1
    named = of_offers(weight="w").fit(frame)
    new = frame.drop(columns=["bought", "w"])
    given = of_offers(kind="choice", chosen="", group="")
    given.set_params(recipe={**QUICK["recipe"], "fields": "price,colour"})
    given.fit(new, frame["bought"], sample_weight=frame["w"], groups=frame["person"])
    assert named.predict_proba(frame).equals(given.predict_proba(new))
    by_set = frame.groupby("order").first()["w"]
    right = (named.predict(frame) == frame["bought"]).groupby(frame["order"]).all()
    expected = np.average(right, weights=by_set)
    assert named.score(frame) == pytest.approx(expected)
    score = given.score(new, frame["bought"], sample_weight=frame["w"])
    assert score == pytest.approx(expected)


def test_cross_validation_and_search_use_folds_of_whole_sets():
    from sklearn.model_selection import GroupKFold

    frame, folds = choices_in_rows(), GroupKFold(2)
    persons = frame["person"]
    scores = cross_val_score(of_offers(), frame, groups=persons, cv=folds)
    options = {key: value for key, value in QUICK.items() if key != "recipe"}
    for score, (learned, tested) in zip(scores, folds.split(frame, groups=persons), strict=True):
        model = ptrnet.fit(
            frame.iloc[learned],
            set_id="order",
            chosen="bought",
            group="person",
            **options,
            **QUICK["recipe"],
        )
        measured = model.evaluate(
            frame.iloc[tested], set_id="order", chosen="bought", group="person"
        )
        assert score == pytest.approx(measured["accuracy"]["value"])
    p = cross_val_predict(of_offers(), frame, groups=persons, cv=folds, method="predict_proba")
    assert (p.shape, p.sum()) == ((len(frame),), pytest.approx(frame["order"].nunique()))
    search = GridSearchCV(of_offers(), {"hidden_size": [4, 8]}, cv=folds)
    best = search.fit(frame, groups=persons)
    assert best.predict(frame).index.equals(frame.index)


def test_grades_have_places_and_are_scored_by_ndcg():
    frame = choices_in_rows()
    frame["grade"] = (frame["price"] > 0).astype(int) + (frame["price"] > 1)
    estimator = ptrnet.PointerEstimator(set_id="order", grade="grade", group="person", **QUICK)
    estimator.set_params(recipe={**QUICK["recipe"], "fields": ["price", "colour"]}).fit(frame)
    places = estimator.predict(frame)
    columns = {"examples": frame, "set_id": "order", "grade": "grade", "group": "person"}
    for _, rows in frame.groupby("order"):
        assert sorted(places[rows.index]) == [*range(1, len(rows) + 1)]
    expected = estimator.solver_.evaluate(**columns)["ndcg@10"]
    assert places.dtype == int and estimator.score(frame) == pytest.approx(expected["value"])
    # NaN, the metric of sets without a relevant element, does not count in the mean.
    estimator.set_params(recipe={**estimator.recipe, "irrelevant": "out"}).fit(frame)
    expected = estimator.solver_.evaluate(**columns)["ndcg@10"]
    assert estimator.score(frame) == pytest.approx(expected["value"])


def test_wide_frames_need_no_set_id():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    wide = pandas.DataFrame(rng.normal(size=(60, 2)), columns=["train_cost", "car_cost"])
    wide["taken"] = np.where(wide["train_cost"] < wide["car_cost"], "train", "car")
    wide.index += 7
    estimator = ptrnet.PointerEstimator(alternatives=["train", "car"], chosen="taken", **QUICK)
    estimator.fit(wide)
    new = wide.drop(columns="taken")
    names, p = estimator.predict(new), estimator.predict_proba(new)
    assert names.index.equals(wide.index) and p.columns.tolist() == ["train", "car"]
    assert names.tolist() == p.idxmax(axis=1).tolist()
    assert estimator.score(wide) == np.mean(names == wide["taken"]) > 0.8
    with_y = clone(estimator).fit(new, wide["taken"])
    assert with_y.score(new, wide["taken"]) == estimator.score(wide)
    assert cross_val_score(estimator, wide, cv=2).shape == (2,)


def test_frames_that_cannot_be_used_are_refused():
    frame = choices_in_rows(12)
    new = frame.drop(columns="bought")
    with pytest.raises(InputError, match="X: expected a frame"):
        of_offers().fit(frame.to_numpy())
    with pytest.raises(InputError, match="expected one chosen row"):  # a fold that cuts sets
        of_offers().fit(frame[(frame["order"] > 0) | (frame["bought"] == 0)])
    with pytest.raises(InputError, match="y: expected its kind"):
        of_offers(chosen="").fit(new, frame["bought"])
    with pytest.raises(InputError, match=f"for each of {len(new)} rows, got 3"):
        of_offers().fit(new, [1, 0, 0])
    with pytest.raises(InputError, match="recipe: chosen: set the estimator's own"):
        of_offers(recipe={"chosen": "bought"}).fit(frame)
    with pytest.raises(InputError, match='expected the column "bought"'):
        of_offers(steps=2).fit(frame).score(new)


# The checks of scikit-learn pass arrays as X. Those below do not read X, so they apply to an
# estimator of frames, too. Tests above check the same for frames: pickles, the order and subsets of
# rows, unchanged frames, weights and `score`.
WITHOUT_X = {
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
}


def test_the_checks_of_scikit_learn_that_need_no_array_pass_for_frames():
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    passed = set()
    for estimator, check in checks.estimator_checks_generator(of_offers()):
        if check.func.__name__ in WITHOUT_X:
            check(estimator)
            passed.add(check.func.__name__)
    assert passed == WITHOUT_X
