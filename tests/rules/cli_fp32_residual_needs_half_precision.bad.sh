python pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 8 --fp32-residual-connection
