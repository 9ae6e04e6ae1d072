"""LunarLander compiled: the world of Box2D 2.3 in the same arithmetic, and Gymnasium's step above it."""
