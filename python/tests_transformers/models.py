"""Tiny random models of the architectures that accelerate() knows, by name."""
import torch
import transformers

BASE = dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            head_dim=8, max_position_embeddings=512, pad_token_id=0, bos_token_id=1, eos_token_id=2)
DELTA = dict(layer_types=["linear_attention", "full_attention"], linear_key_head_dim=8, linear_value_head_dim=8, linear_num_key_heads=2,
             linear_num_value_heads=4, linear_conv_kernel_dim=4)
MAMBA2 = dict(mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=2, mamba_d_state=8, mamba_d_conv=4, mamba_expand=2, mamba_chunk_size=16)

CONFIGS = {
    "qwen3_next": ("Qwen3Next", BASE | DELTA | dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
                                                    shared_expert_intermediate_size=16)),
    "qwen3_5": ("Qwen3_5", BASE | DELTA),
    "olmo_hybrid": ("OlmoHybrid", BASE | DELTA),
    "kimi_linear": ("KimiLinear", BASE | dict(layer_types=["linear_attention", "full_attention"], linear_num_heads=4, linear_head_dim=8,
                                              linear_conv_kernel_dim=4, num_key_value_heads=4, num_local_experts=4, num_experts_per_tok=2,
                                              moe_intermediate_size=16, kv_lora_rank=16, q_lora_rank=None, qk_nope_head_dim=8,
                                              qk_rope_head_dim=4, v_head_dim=8)),
    "mamba": ("Mamba", dict(vocab_size=64, hidden_size=32, state_size=8, num_hidden_layers=2, use_mambapy=False)),
    "mamba2": ("Mamba2", dict(vocab_size=64, hidden_size=32, state_size=8, num_hidden_layers=2, num_heads=8, head_dim=8, expand=2, n_groups=2,
                              chunk_size=16)),
    "falcon_mamba": ("FalconMamba", dict(vocab_size=64, hidden_size=32, state_size=8, num_hidden_layers=2)),
    "falcon_h1": ("FalconH1", BASE | MAMBA2 | dict(mamba_d_ssm=64)),
    "bamba": ("Bamba", BASE | MAMBA2 | dict(attn_layer_indices=[1])),
    "zamba2": ("Zamba2", BASE | dict(layers_block_type=["mamba", "hybrid"], mamba_d_state=8, mamba_expand=2, n_mamba_heads=8, mamba_ngroups=2,
                                     chunk_size=16, num_mem_blocks=1, attention_head_dim=16)),
    "recurrent_gemma": ("RecurrentGemma", BASE | dict(lru_width=32, attention_window_size=16, block_types=["recurrent", "attention"],
                                                      num_hidden_layers=2)),
    "xlstm": ("xLSTM", dict(vocab_size=64, hidden_size=128, num_hidden_layers=2, num_blocks=2, num_heads=2, chunk_size=16,
                            max_inference_chunksize=512)),
    "minimax": ("MiniMax", BASE | dict(layer_types=["linear_attention", "full_attention"], num_local_experts=4, num_experts_per_tok=2,
                                       block_size=16)),
    "llama": ("Llama", BASE),
    "mistral": ("Mistral", BASE | dict(sliding_window=7)),
    "gemma3": ("Gemma3", BASE | dict(sliding_window=6, layer_types=["sliding_attention", "full_attention"])),
    "gpt_oss": ("GptOss", BASE | dict(num_local_experts=4, num_experts_per_tok=2, sliding_window=8,
                                      layer_types=["sliding_attention", "full_attention"])),
    "llama4": ("Llama4", BASE | dict(intermediate_size_mlp=48, num_local_experts=2, attention_chunk_size=8, interleave_moe_layer_step=2,
                                     layer_types=["chunked_attention", "full_attention"], no_rope_layers=[1, 0])),
    "bert": ("Bert", BASE), "modernbert": ("ModernBert", BASE | dict(num_hidden_layers=4, local_attention=8, global_attn_every_n_layers=2)),
    "bart": ("Bart", dict(vocab_size=64, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                          encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64)),
}
# Those whose attention has masks of its own, or is not causal.
MASKED = {"gpt_oss": "ForCausalLM", "llama4": "ForCausalLM", "bert": "ForMaskedLM", "modernbert": "ForMaskedLM", "bart": "ForConditionalGeneration"}


def build(name: str, **changes):
    """The model in evaluation mode, with weights away from where they start."""
    word, options = CONFIGS[name]
    options = options | changes
    for suffix in ("TextConfig", "Config"):
        config = getattr(transformers, word + suffix, None)
        if config is not None:
            break
    torch.manual_seed(1)
    model = getattr(transformers, word + MASKED.get(name, "ForCausalLM"))(config(**options)).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.05 * torch.randn_like(p))
    return model
