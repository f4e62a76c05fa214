"""Writes adapters/trl: the adapter that TRL's DPO trainer saves after two steps on preferences of `acem3 data preferences`,
over the tiny LLaVA in `checkpoints/llava`, and the logits of the model with it (`values.safetensors`).

    venv/bin/pip install trl==1.16.0 datasets==5.2.0 peft==0.21.2
    venv/bin/python make_trl_adapter.py path/to/acem3

`make_checkpoints.py`, which is run first, names the versions of the other packages. `save_model` writes a tokenizer and a
processor too, which are those of the base and are not kept. The tests are in src/checkpoints/published/tests/adapters.rs and
tests/it/peft_adapters.rs.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from datasets import Image, Sequence, load_dataset
from peft import LoraConfig
from safetensors.torch import load_file, save_file
from transformers import (CLIPImageProcessor, LlavaForConditionalGeneration, LlavaProcessor,
                          PreTrainedTokenizerFast)
from trl import DPOConfig, DPOTrainer

HERE = Path(__file__).parent
CHECKPOINT = HERE / "checkpoints/llava"
OUT = HERE / "adapters/trl"
FILES = ["adapter_config.json", "adapter_model.safetensors"]


def processor(folder):
    """That of `make_trl.py`: `<image>` is a token, and no space is put before a text."""
    parts = json.loads((CHECKPOINT / "tokenizer.json").read_text())
    parts["normalizer"]["normalizers"] = [n for n in parts["normalizer"]["normalizers"] if n["type"] != "Prepend"]
    (folder / "tokenizer.json").write_text(json.dumps(parts))
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), pad_token="<unk>",
                                        eos_token="</s>")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    return LlavaProcessor(image_processor=CLIPImageProcessor.from_pretrained(CHECKPOINT), tokenizer=tokenizer,
                          patch_size=7, vision_feature_select_strategy="default", num_additional_image_tokens=1,
                          image_token="<image>")


def pairs(folder):
    subprocess.run([sys.argv[1], "data", "preferences", "--out", folder, "-n", "4", "--seed", "3", "--panel", CHECKPOINT],
                   check=True)
    rows = [json.loads(line) for line in (folder / "preferences.jsonl").read_text().splitlines()]
    # TRL puts no token before a prompt with an image; a judge's prompt begins with that of every text.
    kept = [{"prompt": "<s>" + r["prompt"], "chosen": r["chosen"], "rejected": r["rejected"],
             "images": [str(folder / image) for image in r["images"]]} for r in rows if r["member"] == "expression"]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))
    data = load_dataset("json", data_files=str(folder / "rows.jsonl"), split="train")
    return data.cast_column("images", Sequence(Image()))


def main():
    folder = Path(tempfile.mkdtemp())
    torch.manual_seed(5)
    model = LlavaForConditionalGeneration.from_pretrained(CHECKPOINT, dtype=torch.float32, attn_implementation="eager")
    lora = LoraConfig(r=4, lora_alpha=8, target_modules=r".*language_model.*_proj", task_type="CAUSAL_LM")
    config = DPOConfig(output_dir=str(folder / "out"), learning_rate=1e-2, max_steps=2, per_device_train_batch_size=2,
                       max_length=None, report_to="none", use_cpu=True, bf16=False, gradient_checkpointing=False,
                       remove_unused_columns=False, save_strategy="no", seed=0)
    trainer = DPOTrainer(model=model, args=config, train_dataset=pairs(folder / "pairs"),
                         processing_class=processor(folder), peft_config=lora)
    trainer.train()
    trainer.save_model()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    for file in FILES:
        shutil.copyfile(folder / "out" / file, OUT / file)
    settings = json.loads((OUT / FILES[0]).read_text()) | {"base_model_name_or_path": "../../checkpoints/llava"}
    (OUT / FILES[0]).write_text(json.dumps(settings, indent=2) + "\n")
    expected = load_file(HERE / "checkpoints/expected.safetensors")
    with torch.no_grad():
        out = trainer.model.eval()(input_ids=expected["input_ids"], pixel_values=expected["pixel_values"])
    save_file({"logits": out.logits[0, -4:].contiguous()}, OUT / "values.safetensors")
    print((out.logits[0, -4:] - expected["logits"][-4:]).abs().max().item())


if __name__ == "__main__":
    main()
