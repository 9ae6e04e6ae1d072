"""LunarLander compiled, with the tree inside the loop: the step of Gymnasium, and the world of Box2D 2.3 below it.

The world is the lander, two legs, two joints and the edges of the ground. Its numbers are float32, and every
operation is in the order of the installed library, so that states have the same bits: contacts (edges against
polygons), sequential impulses with warm starting, position correction, sleeping, continuous collision. The order
in which contacts are made and solved is part of that. Particles are left out: Gymnasium has them only in pictures.

What makes it fast changes no bit. Most time goes into the 180 velocity iterations, which run for episodes side by
side in lanes of vectors, those in the air only until they repeat themselves. All else is done episode by episode;
contacts and impacts are left out where simple bounds show that there can be none.

Bodies are the right leg, the lander, the left leg, which is how the solver meets them. A contact is
body * EDGES + edge.

| Module | What of Box2D |
|---|---|
| `_lanes` | nothing: vectors for numba |
| `_worlds` | the state: b2Body, b2Fixture, b2Contact, b2Joint as columns; constants (b2Settings) |
| `_bodies` | b2Transform, b2AABB, b2Sweep, proxies of b2DynamicTree |
| `_contacts` | b2ContactManager, b2Contact, b2EPCollider |
| `_velocities`, `_positions` | b2ContactSolver, b2RevoluteJoint |
| `_distances`, `_impacts` | b2Distance; b2TimeOfImpact, b2World::SolveTOI |
| `_steps` | b2World::Step, b2Island |
| `_episodes` | nothing: the environment, and the loop over episodes |
"""
