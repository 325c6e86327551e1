#!/usr/bin/env bash
# run-cgroup.sh PROGRAM — runs in memory cgroups of their own, where the host lets us make some.
. "$(dirname "$0")/common.sh"

name=recompute-test-$$
if [ -w /sys/fs/cgroup/memory/cgroup.procs ]; then
    top=/sys/fs/cgroup/memory/$name file=memory.limit_in_bytes
elif [ -w /sys/fs/cgroup/cgroup.procs ] && grep -qw memory /sys/fs/cgroup/cgroup.subtree_control; then
    top=/sys/fs/cgroup/$name file=memory.max
else
    echo "skipped: no memory cgroup can be made here (needs root and the memory controller)"
    exit 77
fi
mkdir "$top" 2>/dev/null || { echo "skipped: $top cannot be made"; exit 77; }
[ $file = memory.max ] && echo +memory >"$top/cgroup.subtree_control"
mkdir "$top/job"
trap 'rmdir "$top/job" "$top"; rm -r "$work"' EXIT
echo max 2>/dev/null >"$top/memory.swap.max"

# within LIMIT SETTINGS: the limit is the parent's, as a container's is
within() {
    echo "$1" >"$top/$file"
    shift
    (echo "$BASHPID" >"$top/job/cgroup.procs" && train "$@")
}

for mib in 20 50 60 90 120 400; do
    within ${mib}M >out 2>err
    judge "a cgroup of $mib MiB" $?
    [ $mib = 50 ] && expect "a cgroup of $mib MiB" "$top/$file: this setting needs"
done
both "cgroup"

# Here the kernel would kill.
within 175M model.num_layers=6 model.hidden_size=256 model.seq_length=128 \
    model.attention_backend=unfused >out 2>err
status=$?
[ $status = 3 ] || { echo "a model larger than its cgroup: status $status"; failed=1; }
expect "a model larger than its cgroup" "the cheapest setting that fits needs"

# The page cache of the group is no use of it that counts.
within 120M --dry-run >out 2>err
(echo "$BASHPID" >"$top/job/cgroup.procs" && head -c 150M /dev/zero >cache && cat cache >/dev/null)
within 120M >out 2>err
judge "a cgroup full of page cache" $?
[ $n_right = 1 ] || { echo "page cache counts: $(cat err)"; failed=1; }
exit $failed
