export CUDA_DEVICE_MAX_CONNECTIONS=32
torchrun pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 \
    --bf16 --tensor-model-parallel-size 2 --sequence-parallel --num-experts 8 --disable-bias-linear --expert-model-parallel-size 4 --moe-token-dispatcher-type alltoall --overlap-moe-expert-parallel-comm
