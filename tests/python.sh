#!/usr/bin/env bash
# python.sh SCRIPT ARGUMENTS... — a test that is written in Python. RC_PEER_PYTHON names a Python that
# has the peers (./dev peers makes one); without it python3 does what it can. Exit 77: skipped.
python=${RC_PEER_PYTHON:-$(command -v python3)}
[ -n "$python" ] || { echo "skipped: there is no Python 3"; exit 77; }
exec "$python" -B "$@"
