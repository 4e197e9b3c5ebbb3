"""From the metadata of the C++ program's checkpoints to the reference's Config."""
import json

import lra_model


def config_of(metadata):
    """metadata: the safetensors file's; its entry `lra` is the model configuration as JSON."""
    c = json.loads(metadata["lra"])
    same = ("dim", "qkv_dim", "hidden", "heads", "layers", "dropout", "attention_dropout", "pooling", "pair",
            "attention", "attention_bias", "positions", "gelu", "norm_epsilon", "pair_head", "init")
    return lra_model.Config(vocab_size=c["vocabulary"], max_len=c["padded_length"], num_classes=c["classes"],
                            **{key: c[key] for key in same})
