//! LoRA adapters in the files of PEFT, over a base: `adapter_config.json` with
//! `adapter_model.safetensors` or `adapter_model.bin` (peft 0.21: `tuners/lora/config.py`,
//! `tuners/lora/layer.py`, `utils/save_and_load.py`).

mod adapter_config;
mod apply;
mod base;
mod outside_decoder;
mod tensors;

pub(super) use apply::{AdapterFolder, apply};
