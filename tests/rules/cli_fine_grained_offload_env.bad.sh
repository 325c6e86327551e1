# te 2.12.0
torchrun pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 \
    --fine-grained-activation-offloading --offload-modules mlp_norm
