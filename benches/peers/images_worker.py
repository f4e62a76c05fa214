"""Decodes, preprocesses and encodes images with Pillow and transformers: reads jobs from standard
input, writes seconds per image to standard output.

Jobs: `decode FILE`, `slow FILE` and `fast FILE` (decode and preprocess), and `encode N` (a batch).

usage: images_worker.py FOLDER THREADS
"""

import sys
import time
from pathlib import Path

import torch
from PIL import Image
from transformers import CLIPImageProcessor, CLIPImageProcessorPil, CLIPVisionModel
from transformers.utils import logging

REPEATS = 10
SIDE = 336


def decode(path):
    return Image.open(path).convert("RGB")


@torch.inference_mode()
def main():
    folder, threads = Path(sys.argv[1]), int(sys.argv[2])
    logging.disable_progress_bar()
    torch.set_num_threads(threads)
    tower = CLIPVisionModel.from_pretrained(folder / "tower", dtype=torch.float32).eval()
    settings = {
        "size": {"shortest_edge": SIDE},
        "crop_size": {"height": SIDE, "width": SIDE},
    }
    processors = {"slow": CLIPImageProcessorPil(**settings), "fast": CLIPImageProcessor(**settings)}
    print("ready", flush=True)
    for line in sys.stdin:
        job, argument = line.split()
        start = time.perf_counter()
        images = REPEATS
        if job == "encode":
            images = int(argument)
            pixel_values = torch.full((images, 3, SIDE, SIDE), 0.5)
            tower(pixel_values, output_hidden_states=True).hidden_states[-2][:, 1:]
        else:
            for _ in range(REPEATS):
                image = decode(folder / argument)
                if job in processors:
                    processors[job](image, return_tensors="pt")
        print((time.perf_counter() - start) / images, flush=True)


main()
