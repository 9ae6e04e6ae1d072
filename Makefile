# Every target installs what it needs into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
REPORT := demo-report
RUNS := $(addprefix $(REPORT)/,cartpole ladder equation bitstring)

.PHONY: demo test test-browser test-slow lint format bench bench-engine bench-screen bench-learning bench-bitstring bench-expressions bench-regression bench-executors \
	bench-control bench-defaults bench-refinement bench-noise bench-designs bench-small bench-laws bench-known-laws bench-environments bench-ablation attack bench-asynchronous bench-kills policies reproduce reproduce-trees clean help

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# torch comes first and alone: its pin is a build for the CPU, and the rest must not look for another.
$(VENV)/installed: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch -c constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e . -c constraints.txt
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]" -c constraints.txt
	touch $@

demo: $(VENV)/installed  ## search an equation, a tree policy, a filter and a bitstring; demo-report/report.html shows them
	@rm -rf $(RUNS) && mkdir -p $(REPORT)
	@echo "== A policy that people can read, for CartPole =="
	$(BIN)/discodso policy CartPole-v1 --budget 10000 --out $(REPORT)/cartpole
	@echo "== An L-C-R ladder filter of unknown length (examples/ladder_filter.py) =="
	$(BIN)/python examples/ladder_filter.py --budget 20000 --plot $(REPORT)/ladder.png --out $(REPORT)/ladder
	@echo "== An equation from a table (examples/data/stopping_distance.csv) =="
	$(BIN)/discodso fit examples/data/stopping_distance.csv --target distance --plot $(REPORT)/equation.png \
		--out $(REPORT)/equation
	@echo "== The paper's parameterised bitstring: hidden bits and hidden numbers =="
	$(BIN)/discodso run bitstring --length 10 --alpha 0.9 --objective f1 --budget 20000 --seed 0 \
		--out $(REPORT)/bitstring
	@echo "== All of it to look at: open this file in a browser =="
	@$(BIN)/discodso report $(RUNS) --out $(REPORT)/report.html

test: $(VENV)/installed-dev  ## ruff, mypy and the tests (minutes)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(BIN)/mypy & mypy=$$!; $(BIN)/python -m pytest -n 2; tested=$$?; wait $$mypy && exit $$tested

$(VENV)/installed-browser: $(VENV)/installed-dev
	@command -v chromium || command -v chromium-browser || command -v google-chrome \
		|| (apt-get update -qq && apt-get install -y -qq chromium) \
		|| (echo "install Chromium first, as your system does it" && false)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[browser]" -c constraints.txt
	touch $@

test-browser: $(VENV)/installed-browser  ## reports in headless Chromium, and axe-core's opinion of them
	DISCODSO_BROWSER=required $(BIN)/python -m pytest tests/report/test_report_browser.py

test-slow: $(VENV)/installed-dev  ## the tests that take long
	$(BIN)/python -m pytest -n 2 -m slow

lint: $(VENV)/installed-dev  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/installed-dev  ## let ruff rewrite
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/installed-bench: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bench]" -c constraints.txt
	touch $@

$(VENV)/installed-baselines: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[baselines]" -c constraints.txt
	touch $@

reproduce: $(VENV)/installed-baselines  ## every table and figure of the paper, small sizes (minutes); see docs/paper.md
	$(BIN)/discodso reproduce all --scale smoke

reproduce-trees: $(VENV)/installed-baselines  ## the paper's tree experiment at its budget, on from what results/ has (a day)
	$(BIN)/discodso reproduce policies --scale full --out results/reproduction/full

bench: bench-engine bench-screen bench-bitstring bench-expressions  ## the short benchmarks; results go to benchmarks/results/

bench-expressions: $(VENV)/installed-bench  ## the expression evaluator against NumPy and pyoperon, and the whole loop
	$(BIN)/python benchmarks/expressions.py
	$(BIN)/python benchmarks/regression_loop.py

bench-regression: $(VENV)/installed  ## the paper's 45 problems, 1e6 calls each (about half an hour on 2 cores)
	$(BIN)/discodso bench regression --problems all --budget 1000000 --seeds 1 --checkpoint 100000 \
		--out runs/regression-paper
	cp runs/regression-paper/paper-A-1000000.jsonl benchmarks/results/regression-paper.jsonl

bench-control: $(VENV)/installed  ## tree policies: simulators against Gymnasium, racing, a whole search
	$(BIN)/python benchmarks/control.py

policies: $(VENV)/installed  ## search the tree policies of results/policies/ that are not there yet (hours)
	$(BIN)/python benchmarks/policies.py

bench-engine: $(VENV)/installed  ## cost of sampling and training against a plain LSTM
	$(BIN)/python benchmarks/engine.py

bench-screen: $(VENV)/installed  ## cost of the screen against scikit-learn's Gaussian process
	$(BIN)/python benchmarks/screen.py

bench-learning: $(VENV)/installed  ## what the network and the screen are worth, 15 tasks (an hour)
	$(BIN)/python benchmarks/learning.py

bench-asynchronous: $(VENV)/installed-bench  ## how busy workers are, and what asynchronous runs are worth (half an hour)
	$(BIN)/python benchmarks/utilisation.py
	$(BIN)/python benchmarks/asynchronous.py

bench-kills: $(VENV)/installed  ## runs that are killed, short of disk, or wanted by two (some minutes)
	$(BIN)/python benchmarks/kills.py

bench-executors: $(VENV)/installed-executors  ## serial, processes, Dask and Ray on 5 ms objectives
	$(BIN)/python benchmarks/executors.py

$(VENV)/installed-executors: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dask,ray]" -c constraints.txt
	touch $@

bench-bitstring: $(VENV)/installed  ## learning on the bitstring task, 5 seeds
	$(BIN)/python benchmarks/bitstring.py --again

bench-defaults: $(VENV)/installed-baselines  ## the default beside the paper's settings, and what each part is worth (an hour)
	$(BIN)/python benchmarks/defaults.py

bench-refinement: $(VENV)/installed-bench  ## ways to refine values without derivatives (minutes)
	$(BIN)/python benchmarks/refinement.py

bench-noise: $(VENV)/installed-baselines  ## noisy rewards: what the race at the end is worth (half an hour)
	$(BIN)/python benchmarks/noise.py

bench-designs: $(VENV)/installed-bench $(VENV)/installed-baselines  ## designs with several values, beside TPE, GP and CMA-ES (an hour)
	$(BIN)/python benchmarks/designs.py

bench-small: $(VENV)/installed-bench $(VENV)/installed-baselines  ## small budgets, beside TPE, a GP sampler, SMAC3 and CMA-ES (hours)
	$(BIN)/python benchmarks/small_budgets.py

bench-laws: $(VENV)/installed-bench  ## twenty laws from noisy tables, beside pyoperon (a quarter of an hour)
	$(BIN)/python benchmarks/noisy_laws.py

bench-known-laws: $(VENV)/installed-bench  ## laws of the Feynman lectures, classical sets and NIST, beside pyoperon and gplearn (hours)
	$(BIN)/python benchmarks/laws.py

$(VENV)/installed-environments: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[environments]" -c constraints.txt
	touch $@

bench-environments: $(VENV)/installed-environments  ## 32 environments as a new user meets them, and the levels asked for (an hour)
	$(BIN)/python benchmarks/environments.py

attack: $(VENV)/installed-dev  ## 11,000 fuzzed inputs of every kind that is read (half an hour)
	$(BIN)/python benchmarks/attack_inputs.py

bench-ablation: $(VENV)/installed-bench  ## regression and tree policies without each part, regression beside pyoperon (hours)
	$(BIN)/python benchmarks/regression.py
	$(BIN)/python benchmarks/regression_ablation.py
	$(BIN)/python benchmarks/trees.py

clean:  ## remove what was built, the environment included
	rm -rf $(VENV) $(REPORT) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
