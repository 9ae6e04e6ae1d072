"""Four small design problems that were made for benchmarks/small_budgets.py, and tuned on by nobody.

Before they were final they were checked with random search, and with random steps on the values of a few fixed
structures; no other method had been tried on them. Parts carry numbers, whole numbers and options;
three are sequences under rules, one is a tree. Every one is deterministic and takes less than a millisecond.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from discodso import (
    ChildTypes,
    Choice,
    Design,
    EndsWith,
    Follows,
    ForbiddenChild,
    Integer,
    LeadsTo,
    OpenSequence,
    Real,
    Repeat,
    Space,
    StartsWith,
    Task,
    Token,
    Tree,
)

# ------------------------------------------------------------------------------------------------ wall

# W/(m K), resistance to vapour, kJ/(m3 K), price of a m3, and what a mm bears.
MATERIALS = {
    "gypsum": (0.25, 8.0, 900.0, 350.0, 0.0),
    "timber": (0.13, 50.0, 1000.0, 700.0, 0.0),
    "clay": (0.60, 9.0, 1600.0, 900.0, 0.0),
    "brick": (0.55, 10.0, 1500.0, 260.0, 0.65),
    "aerated": (0.13, 7.0, 500.0, 190.0, 0.40),
    "concrete": (2.00, 100.0, 2200.0, 480.0, 1.30),
    "wool": (0.036, 1.2, 50.0, 120.0, 0.0),
    "foam": (0.031, 50.0, 30.0, 170.0, 0.0),
    "fibre": (0.042, 4.0, 300.0, 210.0, 0.0),
    "plaster": (0.80, 20.0, 1500.0, 600.0, 0.0),
}
INSIDE, OUTSIDE = (20.0, 0.55), (-8.0, 0.85)  # temperature and humidity
LOAD = 130.0


def saturation(temperature: np.ndarray) -> np.ndarray:
    """Pressure of saturated vapour, Pa."""
    return np.asarray(610.5 * np.exp(17.27 * temperature / (237.3 + temperature)))


def wall_price(design: Design) -> float:
    """Of a m2 over thirty years: material, heat, room lost, damp, a load not borne, hot summers."""
    resistances, vapours, stores = [0.13], [0.0], [0.0]
    price, room, borne, ventilated = 0.0, 0.0, 0.0, False
    for part in design:
        if part.name == "membrane":
            price += 2.0 + 1.5 * math.log1p(part.sd)
            resistance, vapour, store = 0.0, part.sd, 0.0
        elif part.name == "gap":
            room, price = room + part.width, price + 4.0
            resistance, vapour, store = 0.18 * (1 - math.exp(-part.width / 12)), 0.01, 0.0
            ventilated = part is design[-2]
        elif part.name == "studs":
            depth, wood = part.depth / 1000, 6.0 / part.spacing
            own, timber = MATERIALS[part.fill], MATERIALS["timber"]
            conducts = (1 - wood) * own[0] + wood * timber[0]
            resistance, vapour = depth / conducts, depth * own[1]
            store = depth * ((1 - wood) * own[2] + wood * timber[2])
            price += depth * ((1 - wood) * own[3] + wood * 900) + 240 / part.spacing
            borne += 4.0 * part.depth**1.5 / part.spacing
            room += part.depth
        elif part.name == "cladding":
            price += {"boards": 45.0, "metal": 60.0}[part.kind] + 0.4 * part.thickness
            room += part.thickness
            resistance, vapour, store = 0.0, 0.05, 0.0
        else:
            own, thick = MATERIALS[part.kind if part.name != "render" else "plaster"], part.thickness / 1000
            resistance, vapour, store = thick / own[0], thick * own[1], thick * own[2]
            price += 6.0 + thick * own[3]
            borne += part.thickness * own[4]
            room += part.thickness
        if ventilated and part.name == "cladding":
            continue  # outdoor air is behind it
        resistances.append(resistance)
        vapours.append(vapour)
        stores.append(store)
    resistances.append(0.04)
    through, passed = np.cumsum(resistances), np.cumsum(vapours)
    loss = 1 / through[-1]
    temperatures = INSIDE[0] + (OUTSIDE[0] - INSIDE[0]) * through[:-1] / through[-1]
    inside, outside = (float(saturation(np.array(t))) * humid for t, humid in (INSIDE, OUTSIDE))
    pressures = inside + (outside - inside) * passed / max(passed[-1], 1e-9)
    damp = np.maximum(0.0, pressures - saturation(temperatures)).sum() / 100
    kept = float(
        np.sum(np.array(stores) * (1 - through[:-1] / through[-1]))
    )  # nearer to the room counts more
    price += 330 * loss + 0.35 * room + 25 * math.log1p(damp) + 1.2 * max(0.0, LOAD - borne)
    return float(price + 90 * math.exp(-kept / 60))


def wall() -> Task:
    """A wall of up to eight layers, from the room outwards: cheap, warm, dry, thin, and able to bear a load.
    Layers are of some kind and thickness; what may follow what is as builders do it."""
    space = Space(
        [
            Token("board", kind=Choice("gypsum", "timber", "clay"), thickness=Real(8, 60)),
            Token("masonry", kind=Choice("brick", "aerated", "concrete"), thickness=Real(80, 450)),
            Token(
                "studs",
                fill=Choice("wool", "fibre", "foam"),
                depth=Real(60, 320),
                spacing=Integer(25, 90),
            ),
            Token("insulation", kind=Choice("wool", "foam", "fibre"), thickness=Real(20, 300, log=True)),
            Token("membrane", sd=Real(0.05, 150, log=True)),
            Token("gap", width=Real(5, 60)),
            Token("render", thickness=Real(5, 30)),
            Token("cladding", kind=Choice("boards", "metal"), thickness=Real(5, 40)),
        ],
        OpenSequence(3, 8),
        [
            StartsWith("board"),
            EndsWith(("render", "cladding")),
            Repeat(("render", "cladding"), 1, 1),
            Repeat(("masonry", "studs"), 1, 2),
            Repeat("membrane", 0, 1),
            Follows("render", ("masonry", "insulation", "board")),
            Follows("cladding", ("gap", "board")),
            ForbiddenChild("gap", "gap"),
        ],
    )
    return Task(space, lambda design: -wall_price(design) / 100, name="wall")


# ------------------------------------------------------------------------------------------------ rocket

# Metres a second of exhaust, thrust of an engine in kN, its mass in t and its price, tanks by t of propellant.
FUELS = {
    "kerosene": (3050.0, 850.0, 0.75, 1.6, 0.050),
    "methane": (3450.0, 900.0, 1.00, 2.2, 0.060),
    "hydrogen": (4300.0, 350.0, 0.80, 3.5, 0.110),
}
PAYLOAD, ORBIT, GRAVITY = 4.0, 7.8, 9.81  # t, km/s


def rocket_price(design: Design) -> tuple[float, float, float]:
    """Price, speed at the end in km/s, and by how much accelerations were too large, in g."""
    stages, price, helper = list[tuple[float, float, float, float]](), 0.0, (0.0, 0.0, 0.0, 0.0)
    for part in design:
        if part.name == "boosters":
            fuel = part.count * part.propellant
            helper = fuel, 0.12 * fuel + 0.3 * part.count, 2600.0, 2600.0 * fuel / part.burn
            price += 1.0 + 0.6 * part.count + 0.05 * fuel
            continue
        if part.name == "solid":
            fuel, dry, speed = part.propellant, 0.2 + 0.09 * part.propellant, 2750.0
            thrust = speed * fuel / part.burn
            price += 2.0 + 0.06 * fuel
        else:
            speed, each, heavy, costs, tanks = FUELS[part.fuel]
            speed *= 0.9 + 0.1 * (1 - math.exp(-part.nozzle / 30))
            thrust = each * part.engines * (1 - 0.0015 * part.nozzle)
            fuel = part.propellant
            dry = 0.3 + tanks * fuel + part.engines * heavy * (1 + 0.004 * part.nozzle)
            price += 2.5 + 0.9 * costs * part.engines**0.85 + 0.012 * fuel + 0.15 * dry
        flow = fuel + helper[0]
        speed = (fuel * speed + helper[0] * helper[2]) / flow  # burnt together
        stages.append((flow, dry + helper[1], speed, thrust + helper[3]))
        helper = (0.0, 0.0, 0.0, 0.0)
    mass = PAYLOAD + sum(fuel + dry for fuel, dry, *_ in stages)
    gained, rough = 0.0, 0.0
    for fuel, dry, speed, thrust in stages:
        seconds = speed * fuel / thrust
        steep = max(0.05, 1 - gained / 5000) ** 2  # how far up it still points
        rough += max(0.0, thrust / (mass - fuel) / GRAVITY - 6)
        gained += speed * math.log(mass / (mass - fuel)) - GRAVITY * seconds * steep
        gained = max(gained, 0.0)
        mass -= fuel + dry
    return price, (gained - 300) / 1000, rough


def rocket_reward(design: Design) -> float:
    """Minus the price in tens of millions, and what speed lacks."""
    price, speed, rough = rocket_price(design)
    lacks = max(0.0, ORBIT - speed)
    return -(
        price / 10 + 0.9 * lacks + (0.6 if lacks > 0.01 else 0.0) * min(1.0, lacks) + 0.15 * min(rough, 10)
    )


def rocket() -> Task:
    """A rocket of up to four stages, with boosters or without, that brings four tonnes into orbit cheaply.
    Engines and boosters come in whole numbers; propellant and nozzles do not."""
    space = Space(
        [
            Token(
                "liquid",
                fuel=Choice(*FUELS),
                engines=Integer(1, 9),
                propellant=Real(2, 400, log=True),
                nozzle=Real(10, 150, log=True),
            ),
            Token("solid", propellant=Real(1, 150, log=True), burn=Real(30, 130)),
            Token("boosters", count=Integer(2, 6), propellant=Real(2, 60, log=True), burn=Real(40, 130)),
        ],
        OpenSequence(1, 5),
        [
            LeadsTo("boosters", "liquid"),
            Repeat("boosters", 0, 1),
            Repeat(("liquid", "solid"), 1, 4),
            Repeat("solid", 0, 2),
        ],
    )
    return Task(space, rocket_reward, name="rocket")


# ------------------------------------------------------------------------------------------------ charging

STEP, STEPS, COLD = 30.0, 60, 8.0  # seconds, how many, and the temperature at the beginning
FUSE = 60.0  # a temperature that ends it
PUMP = {"off": (0.004, 0.0), "low": (0.015, 0.02), "high": (0.04, 0.07)}  # cooling, and power in C


class Cell:
    """A lithium-ion cell that is charged: its charge, voltage, temperature and age, step by step."""

    def __init__(self) -> None:
        self.charge, self.heat, self.lag = 0.1, COLD, 0.0
        self.age, self.power, self.left = 0.0, 0.0, STEPS

    def rest_voltage(self) -> float:
        """Without any current."""
        s = self.charge
        return 3.1 + 0.75 * s + 0.25 * s**6 + 0.12 * math.tanh(12 * (s - 0.08)) - 0.04

    def resistance(self) -> float:
        """Volts by C; large when cold."""
        return 0.035 * math.exp(-(self.heat - 25) / 35) * (1 + 0.6 * self.charge**4)

    def advance(self, current: float, peak: float, pump: str) -> None:
        """One step at a mean current, whose peak is what plates lithium."""
        cools, needs = PUMP[pump]
        plating = peak * 0.045 * math.exp(-(self.heat - 25) / 22) - 0.13 * (1.05 - self.charge)
        hours = STEP / 3600
        self.age += hours * (
            2.0 * math.log1p(math.exp(60 * plating)) / 6 + 0.08 * math.exp((self.heat - 40) / 9)
        )
        self.lag += (0.02 * current - self.lag) * (1 - math.exp(-STEP / 150))
        warms = current * peak * (self.resistance() + 0.01) * 1.1
        self.heat += STEP * (0.4 * warms - cools * (self.heat - 15) * 0.25)
        self.charge += current * hours
        self.power += needs * hours
        self.left = self.left - 1 if self.heat < FUSE else 0

    def voltage(self, current: float) -> float:
        """At a current."""
        return self.rest_voltage() + self.lag + current * self.resistance()


def charge(design: Design) -> Cell:
    """The cell after all steps of a protocol, or when time is over."""
    cell = Cell()
    for part in design:
        if part.name == "rest":
            for _ in range(min(cell.left, max(1, round(60 * part.minutes / STEP)))):
                cell.advance(0.0, 0.0, part.pump)
        elif part.name == "hold":
            while cell.left:
                current = (part.volts - cell.rest_voltage() - cell.lag) / cell.resistance()
                if current < part.cut:
                    break
                cell.advance(min(current, 5.0), min(current, 5.0), part.pump)
        else:
            duty = part.duty if part.name == "pulse" else 1.0
            spread = 1 + (1 / duty - 1) * (1 - math.exp(-part.seconds / 8)) if part.name == "pulse" else 1.0
            mean = part.current * duty if part.name == "pulse" else part.current
            while cell.left and cell.voltage(mean) < part.until and cell.charge < 1:
                cell.advance(mean, mean * spread, part.pump)
    return cell


def charging() -> Task:
    """A protocol that charges a cold cell in thirty minutes: currents, pulses, holds, rests, cooled or not.
    Charge counts, less what plating and heat age the cell, less what the pump takes."""
    pump = Choice(*PUMP)
    space = Space(
        [
            Token("constant", current=Real(0.1, 5, log=True), until=Real(3.4, 4.3), pump=pump),
            Token(
                "pulse",
                current=Real(0.3, 8, log=True),
                duty=Real(0.2, 0.9),
                seconds=Integer(1, 60, log=True),
                until=Real(3.4, 4.3),
                pump=pump,
            ),
            Token("hold", volts=Real(3.8, 4.3), cut=Real(0.02, 1, log=True), pump=pump),
            Token("rest", minutes=Real(0.5, 10, log=True), pump=pump),
        ],
        OpenSequence(1, 6),
        [
            StartsWith(("constant", "pulse")),
            Follows("hold", ("constant", "pulse", "rest")),
            ForbiddenChild("rest", "rest"),
            EndsWith(("constant", "pulse", "hold")),
            Repeat("rest", 0, 2),
        ],
    )

    def reward(design: Design) -> float:
        cell = charge(design)
        hot = max(0.0, cell.heat - 45) / 20
        return float(min(cell.charge, 1.0) - 1.2 * cell.age - 0.5 * cell.power - hot - 0.004 * len(design))

    return Task(space, reward, name="charging")


# ------------------------------------------------------------------------------------------------ irrigation

DAYS, ALLOTTED = 100, 450.0  # mm of water for the season


def weather() -> tuple[list[float], list[float]]:
    """Rain and what plants could evaporate, mm a day: showers come in spells, and summer has a peak."""
    rng = np.random.default_rng(20)
    days = np.arange(DAYS + 3)
    wet = np.convolve(rng.random(DAYS + 3 + 4), np.ones(5) / 5, "valid") > 0.58
    rain = np.where(wet, rng.gamma(0.9, 9.0, DAYS + 3), 0.0)
    dry = 3 + 3.2 * np.sin(np.pi * (days + 10) / 120) + rng.normal(0, 0.6, DAYS + 3) - 1.5 * wet
    return rain.tolist(), np.maximum(dry, 0.5).tolist()


RAIN, DRY = weather()
AT = {"dawn": 0.95, "noon": 0.72, "dusk": 0.88}  # what reaches the soil
Rule = Callable[[int, float, float], tuple[float, float]]  # day, shallow and deep soil to water had, paid


def read(parts: Iterator[Any]) -> Rule:
    """A tree of questions as a function."""
    part = next(parts)
    match part.name:
        case "soil":
            level, deep, yes, no = part.level, part.depth == "deep", read(parts), read(parts)
            return lambda day, top, low: (yes if (low if deep else top) < level else no)(day, top, low)
        case "forecast":
            dry = [sum(RAIN[day : day + part.days]) < part.rain for day in range(DAYS)]
            yes, no = read(parts), read(parts)
            return lambda day, top, low: (yes if dry[day] else no)(day, top, low)
        case "season":
            until, yes, no = part.day, read(parts), read(parts)
            return lambda day, top, low: (yes if day < until else no)(day, top, low)
        case "water":
            soaks = 1 - 0.5 * math.exp(-4 * part.hours / part.amount)
            does = part.amount * AT[part.time] * soaks, part.amount + 0.3 * part.hours
            return lambda day, top, low: does
    return lambda day, top, low: (0.0, 0.0)


def irrigation_reward(design: Design) -> float:
    """The share of the harvest that is had, less water, work, and what is washed out."""
    rule = read(iter(design))
    top, low = 0.6, 0.7  # shares of 25 and of 60 mm
    grown, could, water, visits, washed = 0.0, 0.0, 0.0, 0, 0.0
    for day in range(DAYS):
        given, paid = rule(day, top, low) if water < ALLOTTED else (0.0, 0.0)
        water, visits = water + paid, visits + (paid > 0)
        top += (given + RAIN[day]) / 25
        sinks = max(0.0, top - 1) + 0.06 * top
        top, low = top - sinks, low + sinks * 25 / 60
        over = max(0.0, low - 1)
        low, washed = low - over, washed + over * 60
        stress = min(1.0, 0.4 * top / 0.45 + 0.6 * low / 0.55) * (1 - 0.35 * max(0.0, low - 0.88) / 0.12)
        flowers = 0.6 + 1.4 * math.exp(-(((day - 62) / 16) ** 2))
        weight = flowers if day < 88 else 0.15  # then it is ripe
        grown, could = grown + weight * stress * DRY[day], could + weight * DRY[day]
        use = stress * DRY[day]
        top, low = max(0.02, top - 0.45 * use / 25), max(0.05, low - 0.55 * use / 60)
    return 2.0 * math.pow(grown / could, 1.5) - 0.0022 * water - 0.006 * visits - 0.002 * washed


def irrigation() -> Task:
    """A rule for watering a field, day by day: a tree of questions about soil, forecast and season.
    Its leaves say how much water, for how long and at which hour, or none."""
    questions, answers = ("soil", "forecast", "season"), ("water", "none")
    space = Space(
        [
            Token("soil", arity=2, depth=Choice("shallow", "deep"), level=Real(0, 1)),
            Token("forecast", arity=2, days=Integer(1, 3), rain=Real(0.5, 40, log=True)),
            Token("season", arity=2, day=Integer(5, 95)),
            Token("water", amount=Real(1, 50, log=True), hours=Integer(1, 12), time=Choice(*AT)),
            Token("none"),
        ],
        Tree(3, 11),
        [
            ChildTypes("season", 0, ("soil", "forecast", "water")),
            ChildTypes("soil", 1, (*questions[1:], *answers)),
            Repeat("season", 0, 2),
        ],
    )
    return Task(space, irrigation_reward, name="irrigation")


FRESH: dict[str, Callable[[], Task]] = {
    "wall": wall,
    "rocket": rocket,
    "charging": charging,
    "irrigation": irrigation,
}

# What an engineer would begin with: insulated masonry; two stages; two currents and a hold; water where the upper
# soil is dry, unless rain is near.
STRUCTURES: dict[str, list[Any]] = {
    "wall": [
        ("board", {"kind": "gypsum"}),
        ("masonry", {"kind": "brick"}),
        ("insulation", {"kind": "foam"}),
        "render",
    ],
    "rocket": [("liquid", {"fuel": "kerosene"}), ("liquid", {"fuel": "hydrogen"})],
    "charging": [("constant", {"pump": "low"}), ("constant", {"pump": "low"}), ("hold", {"pump": "low"})],
    "irrigation": [
        "forecast",
        ("soil", {"depth": "shallow"}),
        ("water", {"time": "dawn"}),
        "none",
        "none",
    ],
}
