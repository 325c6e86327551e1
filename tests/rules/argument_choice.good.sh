torchrun pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --lr-decay-style cosine --moe-router-load-balancing-type $KIND
