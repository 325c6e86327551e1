export CUDA_GRAPHS_USE_NODE_PRIORITY=1
torchrun pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 \
    --tensor-model-parallel-size 2 --tensor-parallel-num-weight-shards 4 --cuda-graph-impl transformer_engine --cuda-graph-modules attn
