"""Writes vision/*: what the reference implementations make of a tiny random CLIP and of small images.

    python -m venv venv
    venv/bin/pip install numpy==2.4.6 pillow==13.0.0 safetensors==0.8.0 torch==2.11.0 transformers==5.23.0
    venv/bin/python make_vision.py

Everything is seeded: the same versions write the same values. The tests are in tests/it/vision.rs.
"""

import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from safetensors.numpy import save_file
from transformers import CLIPVisionConfig, CLIPVisionModel

OUT = Path(__file__).parent / "vision"
ACTIVATIONS = ["quick_gelu", "gelu", "gelu_pytorch_tanh"]


def config(act):
    return CLIPVisionConfig(
        hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
        image_size=20, patch_size=6, hidden_act=act, attn_implementation="eager",
    )


def clip():
    """Weights, pixel values, every hidden state for each activation, and gradients for the first."""
    torch.manual_seed(7)
    model = CLIPVisionModel(config(ACTIVATIONS[0]))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            # Far enough from the initial values that no layer is almost the identity.
            weight.copy_(torch.randn_like(weight) * 0.2 + ("norm" in name and "weight" in name))
    pixels = torch.randn(2, 3, 20, 20)
    # The loss is the product of the last state and this.
    seed = torch.randn(2, 10, 32)
    tensors = {"pixel_values": pixels, "seed": seed}
    plain = lambda name: name.removeprefix("vision_model.")
    for name, weight in model.named_parameters():
        tensors[f"weight.{plain(name)}"] = weight
    for act in ACTIVATIONS:
        other = CLIPVisionModel(config(act))
        other.load_state_dict(model.state_dict())
        output = other(pixels, output_hidden_states=True)
        for i, state in enumerate(output.hidden_states):
            tensors[f"{act}.{i}"] = state
        tensors[f"{act}.pooled"] = output.pooler_output
        if act == ACTIVATIONS[0]:
            (output.hidden_states[-1] * seed).sum().backward()
            for name, weight in other.named_parameters():
                if weight.grad is not None:
                    tensors[f"grad.{plain(name)}"] = weight.grad
    arrays = {name: t.detach().contiguous().numpy() for name, t in tensors.items()}
    save_file(arrays, OUT / "clip.safetensors")
    fields = ["hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
              "image_size", "patch_size", "num_channels", "layer_norm_eps", "hidden_act"]
    text = {field: getattr(config(ACTIVATIONS[0]), field) for field in fields}
    (OUT / "clip.json").write_text(json.dumps(text, indent=2) + "\n")


def drawing(width, height):
    """A smooth coloured picture with one hard edge."""
    y, x = np.mgrid[0:height, 0:width]
    r = 255 * x / width
    g = 127 + 100 * np.sin(x / 5 + y / 4)
    b = np.where(x + 2 * y > width, 200, 30) * y / height
    return np.stack([r, g, b], -1).clip(0, 255).astype(np.uint8)


def images():
    """Small files of every kind, and the pixels that Pillow sees, upright."""
    rgb = Image.fromarray(drawing(23, 17))
    grey = rgb.convert("L")
    palette = rgb.quantize(11)
    alpha = rgb.copy()
    alpha.putalpha(grey.point(lambda v: 255 - v))
    sixteen = np.asarray(grey).astype(np.uint16)
    full = Image.fromarray(sixteen * 257)
    twelve = Image.fromarray(sixteen * 16 + 5)
    second = ImageOps.invert(rgb)
    turned = Image.Exif()
    turned[274] = 6
    mirrored = Image.Exif()
    mirrored[274] = 5
    files = {
        "rgb.png": (rgb, {}), "grey.png": (grey, {}), "alpha.png": (alpha, {}),
        "bilevel.png": (grey.convert("1"), {}), "palette.png": (palette, {}),
        "transparent.png": (palette, {"transparency": bytes(range(0, 110, 10))}),
        "sixteen.png": (full, {}), "twelve.png": (twelve, {}),
        "turned.png": (rgb, {"exif": turned}),
        "animated.png": (rgb, {"save_all": True, "append_images": [second]}),
        "plain.jpg": (rgb, {"quality": 90}), "full.jpg": (rgb, {"quality": 90, "subsampling": 0}),
        "half.jpg": (rgb, {"quality": 90, "subsampling": 1}),
        "progressive.jpg": (rgb, {"quality": 90, "progressive": True}),
        "grey.jpg": (grey, {"quality": 90}), "cmyk.jpg": (rgb.convert("CMYK"), {"quality": 90}),
        "turned.jpg": (rgb, {"quality": 90, "exif": turned}),
        "mirrored.jpg": (rgb, {"quality": 90, "exif": mirrored}),
        "rgb.bmp": (rgb, {}), "palette.bmp": (palette, {}), "grey.bmp": (grey, {}),
        "rgb.tiff": (rgb, {}), "lzw.tiff": (rgb, {"compression": "tiff_lzw"}),
        "deflate.tiff": (rgb, {"compression": "tiff_adobe_deflate"}), "grey.tiff": (grey, {}),
        "alpha.tiff": (alpha, {}), "sixteen.tiff": (full, {}), "twelve.tiff": (twelve, {}),
        "cmyk.tiff": (rgb.convert("CMYK"), {}),
        "turned.tiff": (rgb, {"exif": turned}),
        "pages.tiff": (rgb, {"save_all": True, "append_images": [second]}),
        "lossy.webp": (rgb, {"quality": 90}), "lossless.webp": (rgb, {"lossless": True}),
        "alpha.webp": (alpha, {"lossless": True, "exact": True}),
        "turned.webp": (rgb, {"lossless": True, "exif": turned}),
        "animated.webp": (rgb, {"lossless": True, "save_all": True, "append_images": [second]}),
    }
    (OUT / "images").mkdir(exist_ok=True)
    for name, (image, options) in files.items():
        image.save(OUT / "images" / name, **options)
    # Pillow writes no YCCK, but says of the four components whatever the Adobe marker says.
    cmyk = bytearray((OUT / "images" / "cmyk.jpg").read_bytes())
    cmyk[cmyk.index(b"Adobe") + 11] = 2
    (OUT / "images" / "ycck.jpg").write_bytes(cmyk)

    pixels = {}
    for name in [*files, "ycck.jpg"]:
        image = ImageOps.exif_transpose(Image.open(OUT / "images" / name))
        if image.mode == "I;16":
            # Pillow cuts off what is above 255; these have 16 bits, or 12, of which the upper 8 count.
            values = np.asarray(image) >> (4 if name.startswith("twelve") else 8)
            image = Image.fromarray(values.astype(np.uint8))
        pixels[name] = np.asarray(image.convert("RGB"))
    save_file({name: np.ascontiguousarray(p) for name, p in pixels.items()}, OUT / "images.safetensors")


def resized():
    """One noisy image in many sizes, and as CLIP and LLaVA would see it."""
    noise = np.random.default_rng(5).integers(0, 256, (37, 61, 3), dtype=np.uint8)
    mixed = (drawing(61, 37) // 2 + noise // 2).astype(np.uint8)
    image = Image.fromarray(mixed)
    image.save(OUT / "images" / "mixed.png")
    tensors = {}
    filters = [("bilinear", Image.BILINEAR), ("bicubic", Image.BICUBIC)]
    for name, number in filters:
        for width, height in [(16, 16), (61, 9), (5, 37), (50, 40), (1, 1)]:
            tensors[f"{name}.{width}x{height}"] = np.asarray(image.resize((width, height), number))
    mean, std = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
    side = max(image.size)
    square = Image.new("RGB", (side, side), tuple(int(m * 255) for m in mean))
    square.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
    normed = lambda i: ((np.asarray(i) / 255 - mean) / std).astype(np.float32).transpose(2, 0, 1)
    tensors["llava"] = normed(square.resize((20, 20), Image.BICUBIC))
    # CLIP: the shorter edge to 20, then the middle 16.
    small = image.resize((int(20 * 61 / 37), 20), Image.BICUBIC)
    left, top = (small.width - 16) // 2, (small.height - 16) // 2
    tensors["clip"] = normed(small.crop((left, top, left + 16, top + 16)))
    save_file({name: np.ascontiguousarray(t) for name, t in tensors.items()}, OUT / "resized.safetensors")


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    clip()
    images()
    resized()
