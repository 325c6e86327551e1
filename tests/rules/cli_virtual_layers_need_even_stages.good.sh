python pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 8 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2
