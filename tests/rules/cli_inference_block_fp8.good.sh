torchrun pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 \
    --fp8-format hybrid --cuda-graph-impl local --inference-cuda-graph-scope layer
