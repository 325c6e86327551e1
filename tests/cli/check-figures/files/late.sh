python pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \
    --seq-length 8192 --micro-batch-size 1 --position-embedding-type rope --bf16 \
    --tensor-model-parallel-size $TP \
    --recompute-granularity selective --recompute-modules core_attn
