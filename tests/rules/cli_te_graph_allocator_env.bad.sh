export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
torchrun pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 \
    --cuda-graph-impl transformer_engine --cuda-graph-modules attn
