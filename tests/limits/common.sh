# common.sh — a small run and what may become of it under a limit; sourced by run.sh and run-cgroup.sh.
program=$(realpath "$1")
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cd "$work" || exit 1
seq 8000 >text
failed=0

# train SETTINGS: its result as JSON
train() {
    "$program" train "$source/examples/gpt.yaml" --json --quiet 'dataset.data_path=[text]' \
        model.num_layers=2 model.hidden_size=64 model.seq_length=32 engine.threads=2 \
        train.train_iters=2 train.eval_iters=0 engine.memory_budget=null scheduler.lr_warmup_iters=0 "$@"
}
loss_of() { grep -o '"last_loss": [-0-9.e]*' "$1"; }

train >whole || exit 1
right=$(loss_of whole)
[ -n "$right" ] || { echo "the result names no last_loss"; exit 1; }

n_right=0 n_refused=0
# judge NAME STATUS: of a run that wrote `out` and `err`
judge() {
    if [ "$2" = 0 ] && [ "$(loss_of out)" = "$right" ]; then
        n_right=$((n_right + 1))
    elif [ "$2" = 3 ] && [ -s err ]; then
        n_refused=$((n_refused + 1))
    else
        echo "$1: status $2, $(loss_of out), said: $(head -c 300 err)"
        failed=1
    fi
}
# expect NAME WORDS: the last run was refused with these words
expect() {
    grep -qF -- "$2" err || { echo "$1 is not refused with '$2' but: $(cat err)"; failed=1; }
}
# both NAME: some of the limits let the run go on, and some did not
both() {
    echo "$1: $n_right right, $n_refused refused"
    [ $n_right -gt 0 ] && [ $n_refused -gt 0 ] || failed=1
    n_right=0 n_refused=0
}
