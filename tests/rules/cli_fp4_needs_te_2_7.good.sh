# te 2.7.0
python pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 8 --bf16 --fp4-format e2m1
