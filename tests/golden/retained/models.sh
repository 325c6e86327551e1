# The models of the cases here: sizes of which no two are alike, so that no dimension hides another.
# In 16 bit; heads of 10; of 4 heads 2 groups in the Llama.
sizes="model.num_layers=2 model.hidden_size=24 model.num_attention_heads=4 model.kv_channels=10
 model.ffn_hidden_size=36 model.seq_length=16 model.vocab_size=100 train.micro_batch_size=2
 model.make_vocab_size_divisible_by=1 model.bf16=true model.apply_rope_fusion=true"
gpt="$sizes model.normalization=LayerNorm model.activation_func=gelu_tanh
 model.position_embedding_type=learned_absolute model.add_bias_linear=true
 model.hidden_dropout=0.1 model.attention_dropout=0.1"
llama="$sizes model.normalization=RMSNorm model.activation_func=silu model.gated_linear_unit=true
 model.position_embedding_type=rope model.add_bias_linear=false model.num_query_groups=2
 model.share_embeddings_and_output_weights=false model.hidden_dropout=0 model.attention_dropout=0"
two_ranks="model.tensor_model_parallel_size=2 model.sequence_parallel=true"
