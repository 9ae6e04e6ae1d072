"""Symbolic regression: expressions, a compiled evaluator, the paper's benchmarks."""
