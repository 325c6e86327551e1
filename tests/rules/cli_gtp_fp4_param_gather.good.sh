torchrun pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 \
    --fp4-format e2m1 --fp4-param-gather --tensor-model-parallel-size 2 --tensor-parallel-num-weight-shards 4
