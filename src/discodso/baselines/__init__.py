"""Methods to compare with; each is driven by the same `search` and counted by the same evaluator."""
