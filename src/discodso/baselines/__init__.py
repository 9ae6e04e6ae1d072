"""Every other method behind the same ask and tell: random search, GP, decoupled search, Bayesian optimisation.

Knows spaces and the protocol of methods; `methods` has all of them by name.
"""
