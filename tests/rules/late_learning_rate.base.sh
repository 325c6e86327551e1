torchrun pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 \
    --bf16 --pipeline-model-parallel-size 4 --lr $LR
