"""An expression as a pure function of arrays and parameters, for JAX and whatever else is called like NumPy."""

from __future__ import annotations

from discodso.tasks.regression.export.source import ATOM, Part, Source, comment, inputs
from discodso.tasks.regression.export.text_form import text
from discodso.tasks.regression.expression import Expression
from discodso.tasks.regression.operators import OPERATORS


class _Pure(Source):
    functions = {name: f"np.{name}" for name in OPERATORS} | {"pow": "np.power"}

    def __init__(self, expression: Expression) -> None:
        super().__init__(expression, [f"x[..., {i}]" for i in range(len(expression.columns))])
        self.params: list[float] = []

    def number(self, value: float) -> Part:
        if float(value).is_integer():
            return super().number(value)
        self.params.append(float(value))
        return f"params[{len(self.params) - 1}]", ATOM

    def pi(self) -> Part:
        return "np.pi", ATOM


def jax_source(expression: Expression, name: str = "predict", namespace: str = "jax.numpy") -> str:
    """A function `predict(x, params)` of x[..., d], with nothing but functions of the namespace.

    Numbers that are not whole are parameters, so that the function can be differentiated and fitted by them;
    `PARAMS` are their values.
    """
    code = _Pure(expression)
    body = code.body()
    # An array, also if the formula is a number.
    body = body if "x[..." in body else f"{body} + 0.0 * x[..., 0]"
    names = [f"x[..., {i}]" for i in range(len(expression.columns))]
    return (
        f"import {namespace} as np\n\nPARAMS = {code.params!r}\n\n\n"
        f"def {name}(x, params):\n"
        f'    """{comment(text(expression))}; inputs: {inputs(names, expression)}."""\n'
        f"    return {body}\n"
    )
