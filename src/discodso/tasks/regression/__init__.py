"""Equations from tables: expressions, their evaluation and least squares, the choice of a model, the estimator."""
