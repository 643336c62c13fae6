"""Writes golden values for the ops of Llama-style decoders and SigLIP-style towers, and for a small model built of them:
inputs, outputs and gradients as PyTorch has them (float64, CPU).

usage: python make_op_golden.py OUT_DIR     (needs torch, numpy, safetensors)

ops.safetensors, for each case: CASE/in.NAME (float32, or int64 for ids), CASE/out.NAME, and CASE/g.NAME, the gradient of
the loss by in.NAME. The loss is CASE/out.loss, or sum(out.y in.r) where there is none.
smol.safetensors: metadata `config`; w.NAME weights named as Hugging Face's SmolVLM; in.images [B, 3, S, S], in.tokens,
in.targets (the token behind each position, the picture's last one first), in.weights; out.logits [B, T+1, V], out.loss
(sum), g.NAME gradients of the summed loss divided by the summed weight.
"""
import json, sys
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file


def rms_norm(x, weight, eps=1e-5):
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))


def rotate_half(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def rope(x, positions, theta):
    """x [B, T, H, D], positions [T] or [B, T]."""
    d = x.shape[-1]
    frequency = theta ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angles = positions[..., None].double() * frequency
    angles = torch.cat((angles, angles), -1)[..., None, :]
    return x * angles.cos() + rotate_half(x) * angles.sin()


def swiglu_mlp(x, gate, up, down):
    return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)


def attention(q, k, v, causal):
    """[B, T, H, D] each; k and v may have fewer heads."""
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True).transpose(1, 2)


def weighted_loss(logits, targets, weights):
    return (weights * F.cross_entropy(logits, targets, reduction="none")).sum()


def exact(*shape, scale=1.0):
    """Random numbers that float32 holds exactly."""
    return (scale * torch.randn(*shape)).float().double()


def op_cases():
    """name: (function of the inputs, inputs)"""
    weights = torch.tensor([1.0, 0.0, 0.5, 2.0, 1.0] * 4).double()
    return {
        "rms_norm": (rms_norm, dict(x=exact(2, 5, 24), weight=exact(24))),
        "rope": (lambda x, positions: rope(x, positions, 10_000.0), dict(x=exact(2, 7, 3, 16), positions=torch.arange(5, 12))),
        "rope_of_rows": (lambda x, positions: rope(x, positions, 100.0), dict(x=exact(2, 4, 1, 6), positions=torch.tensor([[0, 1, 2, 3], [900, 7, 7, 100_000]]))),
        "swiglu_mlp": (swiglu_mlp, dict(x=exact(2, 5, 16), gate=exact(40, 16, scale=0.3), up=exact(40, 16, scale=0.3), down=exact(16, 40, scale=0.3))),
        "grouped_attention": (lambda q, k, v: attention(q, k, v, True), dict(q=exact(2, 6, 4, 8), k=exact(2, 6, 2, 8), v=exact(2, 6, 2, 8))),
        "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), dict(x=exact(3, 40, scale=2.0))),
        "linear_cross_entropy": (
            lambda hidden, weight, targets, weights: weighted_loss(F.linear(hidden, weight), targets, weights),
            dict(hidden=exact(20, 16), weight=exact(600, 16, scale=0.5), targets=torch.randint(0, 600, (20,)), weights=weights),
        ),
        "tied_head": (
            lambda ids, table, mix, targets, weights: weighted_loss(F.linear(F.linear(F.embedding(ids, table), mix), table), targets, weights),
            dict(ids=torch.randint(0, 11, (20,)), table=exact(11, 8), mix=exact(8, 8, scale=0.5), targets=torch.randint(0, 11, (20,)), weights=weights),
        ),
    }


def make_ops():
    out = {}
    for name, (f, inputs) in op_cases().items():
        leaves = {k: v.requires_grad_() for k, v in inputs.items() if v.is_floating_point() and k != "weights"}
        y = f(**inputs)
        if y.dim() == 0:
            loss, results = y, {"out.loss": y.view(1)}
        else:
            r = exact(*y.shape)
            loss, results = (y * r).sum(), {"out.y": y, "in.r": r}
        loss.backward()
        results |= {f"in.{k}": v for k, v in inputs.items()} | {f"g.{k}": v.grad for k, v in leaves.items()}
        out |= {f"{name}/{k}": v for k, v in results.items()}
    return out


SMOL = dict(img_size=16, patch_size=4, image_embed_dim=16, image_n_head=2, image_inner=40, num_blks=2, pixel_shuffle=2,
            n_embd=24, n_head=4, n_kv_head=2, n_inner=32, n_layer=2, vocab_size=19, rope_theta=10_000.0)


def smol_weights(c):
    d, t, head = c["image_embed_dim"], c["n_embd"], c["n_embd"] // c["n_head"]
    vision, text = "model.vision_model.", "model.text_model."
    side = c["img_size"] // c["patch_size"]
    shapes = {
        vision + "embeddings.patch_embedding.weight": (d, 3, c["patch_size"], c["patch_size"]),
        vision + "embeddings.patch_embedding.bias": (d,),
        vision + "embeddings.position_embedding.weight": (side * side, d),
        vision + "post_layernorm.weight": (d,),
        vision + "post_layernorm.bias": (d,),
        "model.connector.modality_projection.proj.weight": (t, d * c["pixel_shuffle"] ** 2),
        text + "embed_tokens.weight": (c["vocab_size"], t),
        text + "norm.weight": (t,),
    }
    for i in range(c["num_blks"]):
        at = f"{vision}encoder.layers.{i}."
        for p in ("q_proj", "k_proj", "v_proj", "out_proj"):
            shapes |= {f"{at}self_attn.{p}.weight": (d, d), f"{at}self_attn.{p}.bias": (d,)}
        for norm in ("layer_norm1", "layer_norm2"):
            shapes |= {f"{at}{norm}.weight": (d,), f"{at}{norm}.bias": (d,)}
        inner = c["image_inner"]
        shapes |= {f"{at}mlp.fc1.weight": (inner, d), f"{at}mlp.fc1.bias": (inner,)}
        shapes |= {f"{at}mlp.fc2.weight": (d, inner), f"{at}mlp.fc2.bias": (d,)}
    for i in range(c["n_layer"]):
        at = f"{text}layers.{i}."
        kv = c["n_kv_head"] * head
        shapes |= {f"{at}self_attn.q_proj.weight": (t, t), f"{at}self_attn.k_proj.weight": (kv, t)}
        shapes |= {f"{at}self_attn.v_proj.weight": (kv, t), f"{at}self_attn.o_proj.weight": (t, t)}
        shapes |= {f"{at}mlp.gate_proj.weight": (c["n_inner"], t), f"{at}mlp.up_proj.weight": (c["n_inner"], t)}
        shapes |= {f"{at}mlp.down_proj.weight": (t, c["n_inner"])}
        shapes |= {f"{at}input_layernorm.weight": (t,), f"{at}post_attention_layernorm.weight": (t,)}
    norm = lambda name: "norm" in name and name.endswith("weight")
    return {k: exact(*s, scale=0.2) + (1.0 if norm(k) else 0.0) for k, s in shapes.items()}


def smol(c, w, images, tokens):
    """Logits [B, T + 1, V]: behind the picture, and behind each token."""
    layer_norm = lambda x, at: F.layer_norm(x, x.shape[-1:], w[at + ".weight"], w[at + ".bias"], 1e-6)
    linear = lambda x, at: F.linear(x, w[at + ".weight"], w.get(at + ".bias"))
    split = lambda x, heads: x.unflatten(-1, (heads, -1))
    at = "model.vision_model.embeddings."
    x = F.conv2d(images, w[at + "patch_embedding.weight"], w[at + "patch_embedding.bias"], stride=c["patch_size"])
    x = x.flatten(2).transpose(1, 2) + w[at + "position_embedding.weight"]
    for i in range(c["num_blks"]):
        at = f"model.vision_model.encoder.layers.{i}."
        h = layer_norm(x, at + "layer_norm1")
        q, k, v = (split(linear(h, f"{at}self_attn.{p}_proj"), c["image_n_head"]) for p in "qkv")
        x = x + linear(attention(q, k, v, False).flatten(2), at + "self_attn.out_proj")
        h = linear(layer_norm(x, at + "layer_norm2"), at + "mlp.fc1")
        x = x + linear(F.gelu(h, approximate="tanh"), at + "mlp.fc2")
    x = layer_norm(x, "model.vision_model.post_layernorm")
    # Pixel shuffle, as published: r x r neighbours become one row.
    (b, n, d), r = x.shape, c["pixel_shuffle"]
    side = int(n**0.5)
    x = x.view(b, side, side // r, d * r).permute(0, 2, 1, 3)
    x = x.reshape(b, side // r, side // r, d * r * r).permute(0, 2, 1, 3).reshape(b, n // (r * r), d * r * r)
    x = linear(x, "model.connector.modality_projection.proj")
    x = torch.cat((x, F.embedding(tokens, w["model.text_model.embed_tokens.weight"])), 1)
    positions = torch.arange(x.shape[1])
    for i in range(c["n_layer"]):
        at = f"model.text_model.layers.{i}."
        h = rms_norm(x, w[at + "input_layernorm.weight"])
        q = split(linear(h, at + "self_attn.q_proj"), c["n_head"])
        k, v = (split(linear(h, f"{at}self_attn.{p}_proj"), c["n_kv_head"]) for p in "kv")
        q, k = (rope(t, positions, c["rope_theta"]) for t in (q, k))
        x = x + linear(attention(q, k, v, True).flatten(2), at + "self_attn.o_proj")
        h = rms_norm(x, w[at + "post_attention_layernorm.weight"])
        x = x + swiglu_mlp(h, *(w[f"{at}mlp.{p}_proj.weight"] for p in ("gate", "up", "down")))
    x = rms_norm(x, w["model.text_model.norm.weight"])
    return F.linear(x[:, n // (r * r) - 1 :], w["model.text_model.embed_tokens.weight"])


def make_smol(c, batch=3, length=7):
    w = {k: v.float().double().requires_grad_() for k, v in smol_weights(c).items()}
    images = exact(batch, 3, c["img_size"], c["img_size"])
    tokens = torch.randint(0, c["vocab_size"], (batch, length))
    targets = torch.cat((tokens, torch.randint(0, c["vocab_size"], (batch, 1))), 1)
    weights = torch.tensor([1.0, 1.0, 0.0, 0.5]).double().repeat(batch * (length + 1) // 4).view(batch, length + 1)
    logits = smol(c, w, images, tokens)
    loss = weighted_loss(logits.flatten(0, 1), targets.flatten(), weights.flatten())
    (loss / weights.sum()).backward()
    out = {"in.images": images, "in.tokens": tokens, "in.targets": targets, "in.weights": weights}
    out |= {"out.logits": logits, "out.loss": loss.view(1)}
    return out | {f"w.{k}": v for k, v in w.items()} | {f"g.{k}": v.grad for k, v in w.items()}


def save(tensors, path, metadata=None):
    tensors = {k: v.detach() for k, v in tensors.items()}
    tensors = {k: (v if v.dtype == torch.int64 else v.float()).contiguous() for k, v in tensors.items()}
    save_file(tensors, path, metadata=metadata)
    print(path, sum(t.numel() * t.element_size() for t in tensors.values()) // 1024, "KiB")


if __name__ == "__main__":
    dest = Path(sys.argv[1])
    dest.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    save(make_ops(), dest / "ops.safetensors")
    save(make_smol(SMOL), dest / "smol.safetensors", {"config": json.dumps(SMOL)})
