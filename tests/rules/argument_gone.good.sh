torchrun pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 \
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1
