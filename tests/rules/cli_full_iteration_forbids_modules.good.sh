torchrun pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 \
    --cuda-graph-impl full_iteration --no-check-for-nan-in-loss-and-grad
