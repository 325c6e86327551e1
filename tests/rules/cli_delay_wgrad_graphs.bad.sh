torchrun pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 \
    --bf16 --num-experts 8 --disable-bias-linear --expert-model-parallel-size 4 --moe-token-dispatcher-type alltoall --overlap-moe-expert-parallel-comm --delay-wgrad-compute --transformer-impl local
