#!/bin/bash
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
RECOMPUTE_ARGS=(
    --recompute-granularity selective
    --recompute-method uniform   # refused with selective
    --recompute-modules mla_up_proj core_attn nosuch
)
MODEL_ARGS=(
    --num-layers 16 --hidden-size 1024 --num-attention-heads 16
    --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 2
    --multi-latent-attention --no-rope-fusion
    --cuda-graph-impl transformer_engine
)
torchrun pretrain_gpt.py "${MODEL_ARGS[@]}" "${RECOMPUTE_ARGS[@]}"
