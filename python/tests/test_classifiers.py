"""Classifiers as scikit-learn's estimators."""

import copy
import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

import neyman
from neyman import _core
from neyman.classifiers import EXCEPTIONS, _classes

SMALL = {"mlp": {"hidden": [8], "epochs": 20}, "boosted-trees": {"rounds": 20, "min_leaf": 1},
         "random-forest": {"trees": 10, "min_leaf": 1}, "logistic": {},
         "ensemble": {"members": 2, "of": {"kind": "logistic"}}}
KINDS = neyman.classifier_kinds()


def events(n=2000):
    """Two normals at ±1: log r = −2x, numerator first."""
    x = np.concatenate([neyman.Normal(-1, 1).sample(n, seed=1), neyman.Normal(1, 1).sample(n, seed=2)])
    return x, np.repeat([0, 1], n)


def test_every_kind_has_a_class():
    assert sorted(_classes) == sorted(KINDS) == sorted(SMALL)


@pytest.mark.parametrize("kind", KINDS)
def test_options_are_those_of_the_core(kind):
    """Each is read by the core, which alone knows its default and its limits."""
    names = [name for name in inspect.signature(_classes[kind].__init__).parameters
             if name not in ("self", "seed")]
    for name in names:
        assert inspect.signature(_classes[kind].__init__).parameters[name].default is None
        with pytest.raises(neyman.ArgumentError, match=name) as caught:
            _core.Classifier({"kind": kind, name: {"not": "an option"}})
        assert "not known" not in str(caught.value) and "unknown" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_estimators(kind):
    x, y = events()
    made = neyman.classifier(kind, **SMALL[kind], seed=3)
    assert made.fit(x, y) is made and made.n_features_in_ == 1
    z = made.decision_function(x)
    p = made.predict_proba(x)
    np.testing.assert_allclose(np.log(p[:, 1]) - np.log(p[:, 0]), z, atol=1e-9)
    np.testing.assert_allclose(np.exp(made.predict_log_proba(x)), p, rtol=1e-9)
    np.testing.assert_array_equal(made.predict(x), (z > 0).astype(int))
    np.testing.assert_array_equal(made.log_ratios(x), -z)
    # The best is P(x < 0 | -1) = 0.841; 4000 rows tell it to ±0.006.
    assert made.score(x, y) > 0.80
    assert np.corrcoef(z, 2 * x[:, 0])[0, 1] > 0.85


@pytest.mark.parametrize("kind", KINDS)
def test_copies_and_files(kind, tmp_path):
    x, y = events(200)
    made = neyman.classifier(kind, **SMALL[kind], seed=3).fit(x, y)
    z = made.decision_function(x)
    for same in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
        np.testing.assert_array_equal(same.decision_function(x), z)
        assert same.get_params() == made.get_params()
    unfitted = clone(made)
    with pytest.raises(neyman.ArgumentError, match="not fitted"):
        unfitted.predict(x)
    np.testing.assert_array_equal(unfitted.fit(x, y).decision_function(x), z)
    assert pickle.loads(pickle.dumps(clone(made))).get_params() == made.get_params()
    made.save(tmp_path / "classifier.h5")
    loaded = neyman.load_classifier(tmp_path / "classifier.h5")
    np.testing.assert_array_equal(loaded.decision_function(x), z)


def test_damaged_files_are_refused(tmp_path):
    x, y = events(50)
    path = tmp_path / "classifier.h5"
    neyman.Logistic().fit(x, y).save(path)
    content = bytearray(path.read_bytes())
    for bad in (content[:-10], bytes([*content[:-10], content[-10] ^ 1, *content[-9:]]), b"", b"x"):
        path.write_bytes(bytes(bad))
        with pytest.raises(neyman.FileError):
            neyman.load_classifier(path)
    with pytest.raises(neyman.FileError, match="absent"):
        neyman.load_classifier(tmp_path / "absent")
    neyman.SigmoidCalibrator().fit([0, 1], [1, 2]).save(path)
    with pytest.raises(neyman.FileError, match="calibrator"):
        neyman.load_classifier(path)


def test_both_sides_weigh_the_same():
    x, y = events()
    few = np.concatenate([np.arange(2000), np.arange(2000, 2200)])
    made = neyman.Logistic().fit(x[few], y[few])
    assert abs(made.decision_function([[0.0]])[0]) < 0.4  # log(2000/200) = 2.3 without


def test_weights_equal_repetition():
    x, y = events(100)
    w = np.arange(200) % 3
    one = neyman.Logistic().fit(x, y, sample_weight=w)
    other = neyman.Logistic().fit(np.repeat(x, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(one.decision_function(x), other.decision_function(x), atol=1e-6)


def test_layouts_give_the_same():
    x = np.column_stack([neyman.Normal(0, 1).sample(300, seed=s)[:, 0] for s in range(3)])
    y = (x[:, 0] + x[:, 1] > 0).astype(int)
    wanted = neyman.Logistic(l2=0.1).fit(x, y).decision_function(x)
    wide = np.zeros((600, 7))
    wide[::2, 2:5] = x
    for same in (np.asfortranarray(x), wide[::2, 2:5], x.tolist()):
        np.testing.assert_array_equal(neyman.Logistic(l2=0.1).fit(same, y).decision_function(same),
                                      wanted)


def test_pipelines_searches_and_validation():
    x, y = events(300)
    piped = make_pipeline(StandardScaler(), neyman.Logistic())
    assert piped.fit(x, y).score(x, y) > 0.8
    search = GridSearchCV(neyman.Mlp(epochs=2, seed=1), {"hidden": [[4], [8]]}, cv=2).fit(x, y)
    assert search.best_params_["hidden"] in ([4], [8])
    assert cross_val_score(neyman.Logistic(), x, y, cv=3).min() > 0.7
    nested = neyman.Ensemble(members=2, of=neyman.Logistic(l2=0.5))
    assert nested.get_params()["of__l2"] == 0.5
    assert nested.set_params(of__l2=0.25).of.l2 == 0.25
    assert nested.fit(x, y).score(x, y) > 0.8


def test_gradient():
    x, y = events(500)
    made = neyman.Mlp(hidden=[8], epochs=2, seed=1).fit(x, y)
    step = 1e-2
    numeric = (made.decision_function(x + step) - made.decision_function(x - step)) / (2 * step)
    np.testing.assert_allclose(made.gradient(x)[:, 0], numeric, rtol=0.02, atol=0.02)
    with pytest.raises(neyman.ArgumentError, match="differentiable"):
        neyman.BoostedTrees(rounds=2).fit(x, y).gradient(x)


@pytest.mark.parametrize("call, words", [
    (lambda x, y: neyman.Mlp(hidden=[-1]).fit(x, y), "hidden"),
    (lambda x, y: neyman.Mlp(epochs="many").fit(x, y), "epochs"),
    (lambda x, y: neyman.Mlp(seed=-1).fit(x, y), "seed"),
    (lambda x, y: neyman.Logistic().fit(x, y[:-1]), "y"),
    (lambda x, y: neyman.Logistic().fit(x, np.zeros(len(x))), "y has 1 class"),
    (lambda x, y: neyman.Logistic().fit(x, y, sample_weight=[1.0]), "sample_weight"),
    (lambda x, y: neyman.Logistic().fit(x, y, sample_weight=np.full(len(x), -1.0)), "weights"),
    (lambda x, y: neyman.Logistic().fit(np.full_like(x, np.nan), y), "x"),
    (lambda x, y: neyman.Logistic().fit(x, y).predict(np.zeros((2, 3))), "x"),
    (lambda x, y: neyman.Logistic().set_params(nothing=1), "nothing"),
    (lambda x, y: neyman.classifier("mpl"), "mpl"),
    (lambda x, y: neyman.classifier("mlp", hiden=[3]), "hiden"),
])
def test_what_does_not_fit(call, words):
    with pytest.raises(neyman.ArgumentError, match=words):
        call(*events(20))


@pytest.mark.parametrize("kind", KINDS)
def test_scikit_learn_agrees(kind):
    """All of scikit-learn's own checks, but for those of EXCEPTIONS, which say why."""
    failed = {}
    made = neyman.classifier(kind, **SMALL[kind])
    checks = (estimator_checks.estimator_checks_generator(made)
              if hasattr(estimator_checks, "estimator_checks_generator")  # scikit-learn 1.6
              else estimator_checks.check_estimator(made, generate_only=True))
    for estimator, check in checks:
        name = check.func.__name__
        try:
            check(estimator)
        except BaseException as error:  # a check that is skipped says so by an exception
            if type(error).__name__ not in ("SkipTest", "Skipped"):
                failed[name] = f"{type(error).__name__}: {error}"
    unexpected = {name: why for name, why in failed.items() if name not in EXCEPTIONS}
    assert not unexpected, unexpected
