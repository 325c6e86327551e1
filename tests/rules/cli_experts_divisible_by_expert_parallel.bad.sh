python pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 8 --disable-bias-linear --num-experts 6 --expert-model-parallel-size 4
