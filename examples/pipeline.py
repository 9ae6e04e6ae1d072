"""A scikit-learn pipeline: which scaler, which selection of features, which model, and all their settings.

    python examples/pipeline.py --plot pipeline.png

A design is a sequence of steps that ends with a model; every step carries its own settings. The reward is the mean
R2 over three folds of the diabetes data that scikit-learn ships.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from example import command
from sklearn import (
    base,
    datasets,
    ensemble,
    feature_selection,
    linear_model,
    model_selection,
    neighbors,
    preprocessing,
    svm,
)
from sklearn import pipeline as pipelines

from discodso import (
    Choice,
    Design,
    EndsWith,
    ForbiddenDescendant,
    Integer,
    OpenSequence,
    Real,
    Repeat,
    Space,
    Task,
    Token,
)

X, Y = datasets.load_diabetes(return_X_y=True)
FOLDS = model_selection.KFold(3, shuffle=True, random_state=0)
STEPS = ("scale", "spread", "polynomials", "best", "trees_choose")
MODELS = ("ridge", "lasso", "svr", "neighbours", "forest")

SPACE = Space(
    [
        Token("scale", how=Choice("standard", "minmax", "robust")),
        Token("spread", quantiles=Integer(5, 200, log=True), normal=Choice(True, False)),
        Token("polynomials", interactions=Choice(True, False)),
        Token("best", k=Integer(1, 10), score=Choice("regression", "information")),
        Token("trees_choose", depth=Integer(1, 6), share=Real(0.01, 2, log=True)),
        Token("ridge", alpha=Real(1e-4, 1e3, log=True)),
        Token("lasso", alpha=Real(1e-4, 1e2, log=True), l1=Real(0, 1)),
        Token(
            "svr",
            C=Real(1e-1, 1e4, log=True),
            gamma=Real(1e-4, 10, log=True),
            epsilon=Real(0.1, 50, log=True),
        ),
        Token("neighbours", k=Integer(1, 80, log=True), weights=Choice("uniform", "distance"), p=Real(1, 3)),
        Token("forest", trees=Integer(5, 40), depth=Integer(1, 10), leaf=Integer(1, 30, log=True)),
    ],
    OpenSequence(1, 4),
    [
        EndsWith(MODELS),
        ForbiddenDescendant(MODELS, (*STEPS, *MODELS)),
        *(Repeat(step, at_most=1) for step in STEPS),
    ],
)


def step(part: Any) -> base.BaseEstimator:
    """A part of a design as an estimator."""
    match part.name:
        case "scale":
            kinds = {"standard": "StandardScaler", "minmax": "MinMaxScaler", "robust": "RobustScaler"}
            return getattr(preprocessing, kinds[part.how])()
        case "spread":
            shape = "normal" if part.normal else "uniform"
            return preprocessing.QuantileTransformer(n_quantiles=part.quantiles, output_distribution=shape)
        case "polynomials":
            return preprocessing.PolynomialFeatures(interaction_only=part.interactions, include_bias=False)
        case "best":
            score = {"regression": "f_regression", "information": "r_regression"}[part.score]
            return feature_selection.SelectKBest(getattr(feature_selection, score), k=part.k)
        case "trees_choose":
            trees = ensemble.ExtraTreesRegressor(5, max_depth=part.depth, random_state=0)
            return feature_selection.SelectFromModel(trees, threshold=f"{part.share} * mean")
        case "ridge":
            return linear_model.Ridge(part.alpha)
        case "lasso":
            return linear_model.ElasticNet(alpha=part.alpha, l1_ratio=part.l1, max_iter=300)
        case "svr":
            return svm.SVR(C=part.C, gamma=part.gamma, epsilon=part.epsilon, max_iter=2000)
        case "neighbours":
            return neighbors.KNeighborsRegressor(part.k, weights=part.weights, p=part.p)
    return ensemble.RandomForestRegressor(
        part.trees, max_depth=part.depth, min_samples_leaf=part.leaf, random_state=0
    )


def reward(design: Design) -> float:
    """Mean R2 over the folds, less a little for every step."""
    made = pipelines.make_pipeline(*(step(part) for part in design))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that have not converged
        scores = model_selection.cross_val_score(made, X, Y, cv=FOLDS, error_score="raise")
    return float(np.mean(scores)) - 0.001 * len(design)


def task() -> Task:
    """The search for a pipeline; a pipeline that leaves no feature fails."""
    return Task(SPACE, reward, worst_reward=-1.0, name="pipeline")


def draw(design: Design, axes: Any) -> None:
    """Predictions of the folds against the truth."""
    made = pipelines.make_pipeline(*(step(part) for part in design))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = model_selection.cross_val_predict(made, X, Y, cv=FOLDS)
    axes.plot([Y.min(), Y.max()], [Y.min(), Y.max()], "k--", linewidth=1)
    axes.plot(Y, predicted, ".", color="tab:blue", alpha=0.6)
    axes.set(
        xlabel="progression of the disease",
        ylabel="predicted, on folds left out",
        title=" - ".join(design.tokens),
    )


def main(arguments: list[str] | None = None) -> float:
    """The command."""
    return command(__doc__.splitlines()[0], task(), lambda d: f"{len(d)} steps", draw, 500, arguments)


if __name__ == "__main__":
    main()
