"""Writes training/trl.json: the first ten losses of TRL's DPO trainer on the preferences that `acem3 data preferences`
writes, beginning with the weights of the tiny LLaVA in `checkpoints/llava`.

    venv/bin/pip install trl==1.16.0 datasets
    venv/bin/python make_trl.py path/to/acem3

`make_checkpoints.py`, which is run first, names the versions of the other packages. The preferences are those of
`data preferences --count 2 --seed 3 --detail names --reward-tokens`, all in one batch in their order. The tokenizer
puts no space before a text, as TRL's collator reads a continuation by itself. The test is in
src/checkpoints/published/tests/training.rs.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from datasets import Image, Sequence, load_dataset
from transformers import (CLIPImageProcessor, LlavaForConditionalGeneration, LlavaProcessor,
                          PreTrainedTokenizerFast)
from trl import DPOConfig, DPOTrainer

HERE = Path(__file__).parent
CHECKPOINT = HERE / "checkpoints/llava"
STEPS, RATE, BETA = 10, 1e-3, 0.1


def processor(folder):
    parts = json.loads((CHECKPOINT / "tokenizer.json").read_text())
    parts["normalizer"]["normalizers"] = [n for n in parts["normalizer"]["normalizers"] if n["type"] != "Prepend"]
    (folder / "tokenizer.json").write_text(json.dumps(parts))
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), pad_token="<unk>",
                                        eos_token="</s>")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    assert tokenizer.convert_tokens_to_ids("<image>") == 480
    return LlavaProcessor(image_processor=CLIPImageProcessor.from_pretrained(CHECKPOINT), tokenizer=tokenizer,
                          patch_size=7, vision_feature_select_strategy="default", num_additional_image_tokens=1,
                          image_token="<image>")


class Trainer(DPOTrainer):
    """Keeps the losses unrounded."""

    losses = []

    def compute_loss(self, *args, **kwargs):
        result = super().compute_loss(*args, **kwargs)
        self.losses.append((result[0] if isinstance(result, tuple) else result).item())
        return result

    def _get_train_sampler(self, *_):
        return torch.utils.data.SequentialSampler(self.train_dataset)


def main():
    folder = Path(tempfile.mkdtemp())
    pairs = folder / "pairs"
    command = [sys.argv[1], "data", "preferences", "--out", pairs, "--count", "2", "--seed", "3", "--detail", "names",
               "--reward-tokens"]
    subprocess.run(command, check=True)
    rows = [json.loads(line) for line in (pairs / "preferences.jsonl").read_text().splitlines()]
    # TRL puts no token before a prompt with an image; a judge's prompt begins with that of every text.
    kept = [{"prompt": "<s>" + r["prompt"], "chosen": r["chosen"], "rejected": r["rejected"],
             "images": [str(pairs / image) for image in r["images"]]} for r in rows]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))
    data = load_dataset("json", data_files=str(folder / "rows.jsonl"), split="train")
    data = data.cast_column("images", Sequence(Image()))
    model = LlavaForConditionalGeneration.from_pretrained(CHECKPOINT, dtype=torch.float32, attn_implementation="eager")
    model.model.vision_tower.requires_grad_(False)
    config = DPOConfig(output_dir=str(folder / "out"), beta=BETA, learning_rate=RATE, max_steps=STEPS,
                       per_device_train_batch_size=len(kept), lr_scheduler_type="constant", weight_decay=0.0,
                       max_grad_norm=0.0, max_length=None, report_to="none", use_cpu=True, bf16=False,
                       gradient_checkpointing=False, remove_unused_columns=False, save_strategy="no", seed=0)
    trainer = Trainer(model=model, args=config, train_dataset=data, processing_class=processor(folder))
    trainer.train()
    assert len(trainer.losses) == STEPS
    (HERE / "training/trl.json").write_text(json.dumps({"pairs": len(kept), "losses": trainer.losses}) + "\n")
    print(trainer.losses)


main()
