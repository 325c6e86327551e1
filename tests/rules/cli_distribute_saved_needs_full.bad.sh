torchrun pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 \
    --recompute-method uniform --distribute-saved-activations --tensor-model-parallel-size 2
