python pretrain_gpt.py --num-layers 8 --hidden-size 1000 --num-attention-heads 16 --kv-channels 64
