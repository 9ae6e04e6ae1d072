"""Quantum circuits in plain NumPy: gates that prepare a given state, and the ground energy of hydrogen.

    python examples/quantum_circuit.py --plot circuit.png
    python examples/quantum_circuit.py h2 --plot h2.png

A gate acts on a qubit, or on a pair of them, and may turn by an angle: a token with an option and a number. The
first command prepares a fixed state of three qubits; the reward is the fidelity, less a little for every gate. The
second finds the ground energy of the hydrogen molecule at a distance of 0.75 angstrom (two qubits, coefficients as
published by O'Malley et al., Phys. Rev. X 6, 031007, table 1).
"""

from __future__ import annotations

import sys
from functools import partial, reduce
from typing import Any

import numpy as np
from example import command

from discodso import Choice, Design, OpenSequence, Real, Space, Task, Token

I2, X, Y, Z = np.eye(2), np.array([[0, 1], [1, 0]]), np.array([[0, -1j], [1j, 0]]), np.diag([1, -1])
PAULI = {"rx": X, "ry": Y, "rz": Z}
COST = 0.002  # of a gate
H2 = {"II": 0.2252, "ZI": 0.3435, "IZ": -0.4347, "ZZ": 0.5716, "XX": 0.0910, "YY": 0.0910}


def operator(word: str) -> np.ndarray:
    """A product of Pauli matrices, a letter for each qubit."""
    return reduce(np.kron, [{"I": I2, "X": X, "Y": Y, "Z": Z}[letter] for letter in word])


HAMILTONIAN = sum(weight * operator(word) for word, weight in H2.items())


def space(qubits: int, longest: int) -> Space:
    """Circuits of rotations and controlled-not gates."""
    turn = {"qubit": Choice(*range(qubits)), "angle": Real(-np.pi, np.pi)}
    pairs = [f"{a}-{b}" for a in range(qubits) for b in range(qubits) if a != b]
    return Space(
        [*(Token(name, **turn) for name in PAULI), Token("cx", pair=Choice(*pairs))], OpenSequence(1, longest)
    )


def run(design: Design, qubits: int) -> np.ndarray:
    """The state after all gates, from |0...0>."""
    state = np.zeros((2,) * qubits, complex)
    state[(0,) * qubits] = 1
    for part in design:
        if part.name == "cx":
            control, target = map(int, part.pair.split("-"))
            on = [slice(None)] * qubits
            on[control] = 1
            state[tuple(on)] = np.flip(state[tuple(on)], axis=target - (target > control))
        else:
            half = part.angle / 2
            gate = np.cos(half) * I2 - 1j * np.sin(half) * PAULI[part.name]
            state = np.moveaxis(np.tensordot(gate, state, (1, part.qubit)), 0, part.qubit)
    return state.ravel()


def target(qubits: int = 3) -> np.ndarray:
    """A fixed state without any structure."""
    rng = np.random.default_rng(7)
    state = rng.standard_normal(2**qubits) + 1j * rng.standard_normal(2**qubits)
    return state / np.linalg.norm(state)


def fidelity(design: Design) -> float:
    """How close the circuit comes to the state: 1 if it prepares it."""
    return float(abs(np.vdot(target(), run(design, 3))) ** 2)


def energy(design: Design) -> float:
    """The energy of the state of a circuit, in hartree."""
    state = run(design, 2)
    return float(np.vdot(state, HAMILTONIAN @ state).real)


def state_task(longest: int = 20) -> Task:
    """Prepare the state of three qubits."""
    return Task(
        space(3, longest), lambda design: fidelity(design) - COST * len(design), name="quantum circuit"
    )


def h2_task(longest: int = 8) -> Task:
    """The lowest energy of hydrogen."""
    return Task(space(2, longest), lambda design: -energy(design) - COST / 10 * len(design), name="hydrogen")


def draw(design: Design, axes: Any, qubits: int = 3) -> None:
    """The circuit: a line for each qubit, a box for each gate."""
    axes.hlines(range(qubits), -1, len(design), color="0.6", zorder=1)
    for at, part in enumerate(design):
        if part.name == "cx":
            control, goal = map(int, part.pair.split("-"))
            axes.plot([at, at], [control, goal], "k-", marker="", zorder=2)
            axes.plot(at, control, "ko", zorder=3)
            axes.plot(at, goal, "o", color="white", markeredgecolor="k", markersize=12, zorder=3)
        else:
            text = f"{part.name}\n{part.angle:.2f}"
            box = {"boxstyle": "round", "facecolor": "#dfe9f5", "edgecolor": "tab:blue"}
            axes.text(at, part.qubit, text, ha="center", va="center", fontsize=8, bbox=box, zorder=4)
    axes.set(
        xlim=(-1, len(design)), ylim=(qubits - 0.5, -0.5), yticks=range(qubits), xticks=[], ylabel="qubit"
    )


def main(arguments: list[str] | None = None) -> float:
    """The command; its first word may be "h2"."""
    words = sys.argv[1:] if arguments is None else arguments
    about = __doc__.splitlines()[0]
    if words[:1] == ["h2"]:
        exact = float(np.linalg.eigvalsh(HAMILTONIAN)[0])

        def tell(design: Design) -> str:
            return f"energy {energy(design):.6f} hartree, exact {exact:.6f}, {len(design)} gates"

        return command(about, h2_task(), tell, partial(draw, qubits=2), 3_000, words[1:])
    return command(
        about, state_task(), lambda d: f"fidelity {fidelity(d):.4f}, {len(d)} gates", draw, 20_000, words
    )


if __name__ == "__main__":
    main()
