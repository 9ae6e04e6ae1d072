#!/bin/sh
# Drives a run from a shell: discodso hands out designs, awk plays the laboratory, and its results are told.
#
#     sh examples/laboratory.sh [FOLDER [BUDGET [AT_ONCE]]]
#
# It can be stopped at any time and started again, by hand or by a queue of jobs, and several may work on one folder.
set -eu
discodso=${DISCODSO:-discodso}
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-laboratory-run} budget=${2:-200} at_once=${3:-8}
settings=$(mktemp) asked=$(mktemp)
trap 'rm -f "$settings" "$asked"' EXIT

cat > "$settings" <<END
[task]
kind = "custom"
task = "laboratory:space"
path = "$here"
[run]
budget = $budget
END

while :; do
    # Lines of an id, a tab, and a design such as: heat(celsius=845.1, minutes=21.5) quench heat(...) cool(minutes=90)
    $discodso ask "$folder" -n "$at_once" --settings "$settings" > "$asked"
    [ -s "$asked" ] || break
    awk -F '\t' '
        function number(step, name) {                  # the value of a name in a step
            if (!match(step, name "=[-+0-9.e]+")) return 0
            return substr(step, RSTART + length(name) + 1, RLENGTH - length(name) - 1) + 0
        }
        {
            hard = 20; stress = 0; hot = 0; cost = 0; failed = 0
            gsub(", ", ",", $2)
            count = split($2, steps, " ")
            for (i = 1; i <= count; i++) {
                step = steps[i]
                minutes = number(step, "minutes")
                if (step ~ /^heat/) {
                    celsius = number(step, "celsius")
                    hot = celsius > 780 && celsius < 900 ? minutes / (minutes + 8) : 0
                    if (celsius < 400) { stress *= 1 - celsius / 400 * minutes / (minutes + 20); hard -= celsius / 80 }
                    cost += minutes / 200
                    if (celsius > 950) failed = 1
                } else if (step ~ /^cool/) {
                    hard += 10 * hot / (1 + minutes / 60); cost += minutes / 600; hot = 0
                } else {
                    hard += 45 * hot; stress += 30 * hot; hot = 0
                }
            }
            if (failed) printf "{\"id\": %d, \"error\": \"the part has melted\"}\n", $1
            else printf "{\"id\": %d, \"reward\": %.12g}\n", $1, hard - stress - cost
        }' "$asked" | $discodso tell "$folder" -
done
$discodso show "$folder"
