torchrun pretrain_gpt.py --num-layers 8 --num-attention-heads 16 --hidden-size 1024 \
    --num-experts $EXPERTS --data-path $DATA --expert-model-parallel-size 2
