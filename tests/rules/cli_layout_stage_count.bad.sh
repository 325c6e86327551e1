torchrun pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 \
    --bf16 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Ett|tt|tt|ttL' --num-layers-per-virtual-pipeline-stage 2
