#!/bin/bash
MODEL="--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --vocab-size 257"
LOGGING="--log-interval 10 --tensorboard-dir tb --wandb-project x --log-throughput --timing-log-level 0"
torchrun --nproc_per_node 1 pretrain_gpt.py $MODEL $LOGGING \
    --micro-batch-size 2 --global-batch-size 4 --train-iters 10 --lr 1e-4 --tokenizer-type NullTokenizer \
    --ckpt-format torch_dist --num-workers 2 --use-mcore-models --transformer-impl transformer_engine --no-load-rng
