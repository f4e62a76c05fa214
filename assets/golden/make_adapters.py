"""Writes adapters/*: folders of random LoRA adapters of the tiny LLaVA in `checkpoints/llava`, written by peft, and the
logits of the model with each of them.

    venv/bin/pip install peft==0.21.2
    venv/bin/python make_adapters.py

`make_checkpoints.py`, which is run first, names the versions of the other packages. `plain` adapts all matrices of the
decoder, `ranks` has `use_rslora`, `rank_pattern` and `alpha_pattern`, `outside` adapts parts outside of the decoder layers and
saves the second layer of the projector as a whole, `pickled` is `plain` in the file of older versions of peft, `upper`
adapts the upper layer, and `llava` has the names and files of LLaVA's own code: an adapter of the language model, and the
projector. The tests are in src/checkpoints/published/tests/adapters.rs and tests/it/peft_adapters.rs.
"""

import json
import shutil

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file

from make_training import HERE, model

OUT = HERE / "adapters"
DECODER = r".*language_model.*\.(q|k|v|o|gate|up|down)_proj"
CONFIGS = {
    "plain": dict(r=3, lora_alpha=6, target_modules=DECODER),
    "ranks": dict(r=2, lora_alpha=5, target_modules=r".*language_model.*\.(q_proj|v_proj|down_proj)", use_rslora=True,
                  rank_pattern={r"layers\.0\.self_attn\.q_proj": 4, "q_proj": 1, "down_proj": 3},
                  alpha_pattern={r"layers\.1\.mlp\.down_proj": 9, "v_proj": 3}),
    "outside": dict(r=2, lora_alpha=4, modules_to_save=["linear_2"],
                    target_modules=r"lm_head|.*linear_1|.*vision_tower.*(layers\.[01]\..*(q_proj|fc1))"),
    "upper": dict(r=2, lora_alpha=4, target_modules=["q_proj", "up_proj"], layers_to_transform=[1],
                  layers_pattern="language_model.layers"),
}


def adapted(seed, config):
    """The model with random adapters. peft makes B zero."""
    torch.manual_seed(seed)
    built = get_peft_model(model(), LoraConfig(lora_dropout=0.1, task_type="CAUSAL_LM", **config)).eval()
    with torch.no_grad():
        for name, weight in built.named_parameters():
            if "lora_" in name:
                weight.copy_(torch.randn_like(weight) * 0.2)
            elif "modules_to_save" in name:
                weight.add_(torch.randn_like(weight) * 0.1)
    return built


def llava(folder):
    """The names of LLaVA's own code for `plain`, with another projector. Returns the model."""
    built = adapted(9, CONFIGS["plain"])
    torch.manual_seed(10)
    projector = {}
    with torch.no_grad():
        for place, layer in ((0, "linear_1"), (2, "linear_2")):
            for name, weight in getattr(built.base_model.model.model.multi_modal_projector, layer).named_parameters():
                weight.add_(torch.randn_like(weight) * 0.1)
                projector[f"base_model.model.model.mm_projector.{place}.{name}"] = weight.detach().clone()
    built.save_pretrained(folder)
    (folder / "README.md").unlink()
    file = folder / "adapter_model.safetensors"
    save_file({name.replace("language_model.", ""): tensor for name, tensor in load_file(file).items()}, file)
    config = json.loads((folder / "adapter_config.json").read_text())
    config |= {"base_model_name_or_path": "vicuna", "target_modules": sorted(["q_proj", "k_proj", "v_proj", "o_proj",
                                                                              "gate_proj", "up_proj", "down_proj"])}
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")
    torch.save(projector, folder / "non_lora_trainables.bin")
    return built


def logits(built, expected):
    with torch.no_grad():
        out = built(input_ids=expected["input_ids"], pixel_values=expected["pixel_values"])
    return out.logits[0, -4:].contiguous()


def main():
    for name in [*CONFIGS, "pickled", "llava"]:
        shutil.rmtree(OUT / name, ignore_errors=True)
    expected = load_file(HERE / "checkpoints/expected.safetensors")
    found = {}
    for seed, (name, config) in enumerate(CONFIGS.items()):
        built = adapted(seed, config)
        built.peft_config["default"].base_model_name_or_path = "../../checkpoints/llava"
        built.save_pretrained(OUT / name)
        (OUT / name / "README.md").unlink()
        found[name] = logits(built, expected)
        print(name, (found[name] - expected["logits"][-4:]).abs().max().item())
    pickled = OUT / "pickled"
    pickled.mkdir()
    torch.save(load_file(OUT / "plain/adapter_model.safetensors"), pickled / "adapter_model.bin")
    shutil.copy(OUT / "plain/adapter_config.json", pickled)
    found["llava"] = logits(llava(OUT / "llava"), expected)
    save_file(found, OUT / "expected.safetensors")


if __name__ == "__main__":
    main()
