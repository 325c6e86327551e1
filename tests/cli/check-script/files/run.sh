#!/bin/bash
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
GPT_ARGS=(
    --num-layers 8 --hidden-size 1024 --num-attention-heads 16
    --cuda-graph-impl transformer_engine --cuda-graph-modules attn
)
RECOMPUTE="--recompute-granularity selective --recompute-method uniform"
torchrun pretrain_gpt.py ${GPT_ARGS[@]} $RECOMPUTE
