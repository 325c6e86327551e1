# also full-recompute-needs-method
torchrun pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 \
    --recompute-granularity full --recompute-num-layers 1 --distribute-saved-activations --tensor-model-parallel-size 2
