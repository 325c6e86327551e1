#!/usr/bin/env bash
# run.sh PROGRAM — runs under limits of the process, from less than the program itself needs on.
. "$(dirname "$0")/common.sh"

for kib in 30000 60000 90000 110000 150000 400000; do
    (ulimit -v $kib && train) >out 2>err
    judge "ulimit -v $kib" $?
    [ $kib = 90000 ] && expect "ulimit -v $kib" "RLIMIT_AS (ulimit -v), 87.9 MiB, leaves"
done
both "ulimit -v"
for kib in 4000 20000 60000 100000 400000; do
    (ulimit -d $kib && train) >out 2>err
    judge "ulimit -d $kib" $?
    [ $kib = 60000 ] && expect "ulimit -d $kib" "RLIMIT_DATA (ulimit -d), 58.6 MiB, leaves"
done
both "ulimit -d"

# A plan is no run: it is made on machines that could not train it.
(ulimit -v 90000 && train --dry-run) >out 2>err || { echo "--dry-run: $(cat err)"; failed=1; }

# The setting that fits is named, and fits.
big=(model.num_layers=6 model.hidden_size=256 model.seq_length=128 model.attention_backend=unfused)
(ulimit -d 230000 && train "${big[@]}") >out 2>err
expect "a larger model" "the cheapest setting that fits needs"
setting=$(grep -o 'model.recompute_granularity=.*' err)
eval "(ulimit -d 230000 && train \"\${big[@]}\" $setting)" >out 2>err ||
    { echo "the setting that fits does not: $setting: $(cat err)"; failed=1; }
exit $failed
