"""What a world consists of: columns of its arrays, constants, and rooms for several worlds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from discodso.tasks.policies.lunar._lanes import LANES

# Only the whole, in `_episodes.py`, is cached, and called from Python: touch that file after a change in another.
# What is called at one place is put there: a World has some ninety fields, and takes long to pass.
options: Any = {"nogil": True, "error_model": "numpy"}
compile_function: Any = njit
compiled = compile_function(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
inlined = compile_function(no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True, **options)
F, U = np.float32, np.uint64

WORLDS = 128
GROUPS = 2 * (WORLDS // LANES) + 1  # of lanes: tried, solved whole, and one to work in
FEW = 10  # velocity iterations of a try
SLOTS, SLOT_ROWS = 4, 22  # contacts that a body may have at once in the solver
RIGHT, LANDER, LEFT = range(3)
BODIES, EDGES = 3, 11
CONTACTS = BODIES * EDGES
SIDES = (4, 6, 4)  # of the polygons
# A body: centre of mass, angle, velocities; where its sweep began; transforms at the end and at the beginning
# (sine, cosine, origin); time at rest; its box with a margin; how far its sweep is advanced.
CX, CY, A, VX, VY, W, C0X, C0Y, A0, S, C, PX, PY, S0, C0, P0X, P0Y, REST, LOWX, LOWY, HIGHX, HIGHY, ALPHA = (
    range(23)
)
# What stays the same of a body; ARM is the joint's anchor, TURNING its mass for rotations, REACH the radius of a
# circle around it, and a little more.
(
    MASS,
    INERTIA,
    CENTREX,
    CENTREY,
    MIDDLEX,
    MIDDLEY,
    ARMX,
    ARMY,
    LOWER,
    UPPER,
    SPEED,
    ZEROED,
    BOTTOM,
    GRIP,
    TURNING,
    REACH,
) = range(16)
# An edge: both ends, its box, its normal.
LEFTX, LEFTY, RIGHTX, RIGHTY, BOXLOWX, BOXLOWY, BOXHIGHX, BOXHIGHY, NORMALX, NORMALY = range(10)
# A contact: normal, point, its points, impulses (normal and tangent, by point), time of impact; and marks.
NORMAL, POINT, POINTS, IMPULSES, IMPACT = 0, 2, 4, 8, 12
EXISTS, TOUCHING, COUNT, FACE, ID, KNOWN, ENABLED, TRIES, SOLVED_AS = 0, 1, 2, 3, 4, 6, 7, 8, 9
# Which parts of two shapes made a point: the number of a vertex or side in A and in B, and which is a side.
FACE_OF_A, FACE_OF_B, BYTES = 1 << 16, 1 << 24, 255 | 255 << 16
# Lists: contacts newest first, their number; ground contact or crash, by body; the
# contacts to be solved; room to work in.
EXISTING, GROUND, SOLVING, SOLVED, WORK = 33, 34, 37, 38, 71
# A constraint: normal, friction; by point: arm, impulses, masses; the matrix of two points, its inverse, whether
# it is used. All are 0 where there is none, and then change nothing.
NX, NY, MU, RX, RY, NI, TI, NM, TM, SECOND = 0, 1, 2, 3, 4, 5, 6, 7, 8, 6
K11, K12, K22, M11, M12, M22, TWICE = 15, 16, 17, 18, 19, 20, 21
# Rows of lanes: velocities of the bodies, their sines, cosines and angles, then for each joint impulses, the limit
# it is at (1 lower, -1 upper, 0 none), arms, what its equations need, and what impulses grew by; and for tries.
POSE, JOINT, JOINT_ROWS, SAVED, DONE, ROWS = 9, 18, 22, 62, 75, 76
IX, IY, IZ, MOTOR, LIMIT, BOUND, AX, AY, BX, BY, A11, A12, A22, A13, A23 = range(15)
INVERSE2, INVERSE3, UX, UY, UZ, DX, DY = range(15, 22)

ZERO, HALF, ONE, TWO = F(0), F(0.5), F(1), F(2)
PI = F(3.14159265359)
SLOP, ANGULAR_SLOP = F(0.005), TWO / F(180) * PI
RADIUS, BOTH_RADII, MARGIN = TWO * SLOP, TWO * (TWO * SLOP), F(0.1)
EPSILON, LARGEST = np.finfo(F).eps, np.finfo(F).max
DT = F(1.0 / 50)
DT_RATIO = ONE / DT * DT
VELOCITY_ITERATIONS, POSITION_ITERATIONS, SUB_STEPS = 180, 60, 8
MAX_TURN, MAX_PUSH = F(8) / F(180) * PI, F(0.2)
MAX_ROTATION, MAX_TRANSLATION = HALF * PI, F(2)
MAX_IMPULSE = DT * F(40)
SLEEP, SLOW, SLOW_TURN = F(0.5), F(0.01) * F(0.01), ANGULAR_SLOP * ANGULAR_SLOP
BAUMGARTE, IMPACT_BAUMGARTE = F(0.2), F(0.75)
DEEPEST, DEEPEST_IMPACT = F(-3) * SLOP, F(-1.5) * SLOP
TARGET, TOLERANCE = SLOP, F(0.25) * SLOP  # of the distance at an impact
CERTAIN = F(0.001)  # more than all errors of rounding together
AT_END = ONE - F(10) * EPSILON
WORST_CONDITION, RELATIVE, ABSOLUTE = F(1000), F(0.98), F(0.001)

sinf: Any = types.ExternalFunction("sinf", types.float32(types.float32))
cosf: Any = types.ExternalFunction("cosf", types.float32(types.float32))


class Shapes(NamedTuple):
    """What is the same in all worlds."""

    polygons: Any  # float32[3, 6, 4], vertices and normals
    bodies: Any  # float32[3, 16]


class Settings(NamedTuple):
    """Arguments of the environment."""

    continuous: bool
    gravity: Any  # float32
    windy: bool
    wind_power: float
    turbulence_power: float


class World(NamedTuple):
    """Several worlds, or one of them without the first axis. What is not by world is to work in."""

    bodies: Any  # float32[WORLDS, 3, 23]
    contacts: Any  # float32[WORLDS, 33, 13]
    marks: Any  # int64[WORLDS, 33, 10]
    lists: Any  # int64[WORLDS, 83]
    edges: Any  # float32[WORLDS, 11, 10]
    joints: Any  # float32[WORLDS, 2, 5], impulses and limits
    rows: Any  # float32[GROUPS, ROWS * LANES]
    slots: Any  # float32[GROUPS, 3 * SLOTS * SLOT_ROWS * LANES], constraints of contacts
    used: Any  # int64[GROUPS, 3], slots that some lane uses, by body
    scratch: Any  # float32[32, 23]
    seen: Any  # float64[WORLDS, 8], observations
    force: Any  # float32[WORLDS, 3]


def new_world() -> World:
    """Room for all worlds."""
    shapes = (3, 23), (CONTACTS, 13), (EDGES, 10), (2, 5)
    bodies, contacts, edges, joints = (np.zeros((WORLDS, *shape), np.float32) for shape in shapes)
    marks, lists = (np.zeros((WORLDS, *shape), np.int64) for shape in ((CONTACTS, 10), (83,)))
    rows = np.zeros((GROUPS, ROWS * LANES), np.float32)
    slots = np.zeros((GROUPS, BODIES * SLOTS * SLOT_ROWS * LANES), np.float32)
    used, scratch = np.zeros((GROUPS, BODIES), np.int64), np.zeros((32, 23), np.float32)
    seen, force = np.zeros((WORLDS, 8)), np.zeros((WORLDS, 3), np.float32)
    return World(bodies, contacts, marks, lists, edges, joints, rows, slots, used, scratch, seen, force)


@intrinsic
def uncounted(typing_context: Any, array: Any) -> Any:
    """The same array, whose uses are not counted, which would take most of the time; the caller keeps it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.return_type)(context, builder, arguments[0])
        view.meminfo = ir.Constant(view.meminfo.type, None)
        return view._getvalue()

    return array(array), generate


@compiled
def uncounted_world(w: World) -> World:
    """Likewise for all arrays."""
    return World(
        uncounted(w.bodies),
        uncounted(w.contacts),
        uncounted(w.marks),
        uncounted(w.lists),
        uncounted(w.edges),
        uncounted(w.joints),
        uncounted(w.rows),
        uncounted(w.slots),
        uncounted(w.used),
        uncounted(w.scratch),
        uncounted(w.seen),
        uncounted(w.force),
    )


@inlined
def world_of(worlds: World, n: int) -> World:
    """One of several worlds."""
    return World(
        worlds.bodies[n],
        worlds.contacts[n],
        worlds.marks[n],
        worlds.lists[n],
        worlds.edges[n],
        worlds.joints[n],
        worlds.rows,
        worlds.slots,
        worlds.used,
        worlds.scratch,
        worlds.seen[n],
        worlds.force[n],
    )
