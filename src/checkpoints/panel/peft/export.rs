//! Writes the files of a panel for serving.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use candle::Tensor;
use serde_json::{Value, json};

use super::adapted_panel::AdaptedPanel;
use super::adapter_files::{AdapterFiles, served_rank};
use super::base_config::VisionConfigs;
use super::base_tensors::{base_tensors, dtype_name, tower_layers};
use super::served_tokenizer::ServedTokenizer;
use super::serving_files::{SERVED_FILE, judge_command, readme, serve_command, served_file};
use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::support::files::atomic_file::{remove_temporary_files, write_atomic};
use crate::support::files::folder::{create_folder, list_names};
use crate::support::network::service_url::ServiceUrl;
use crate::support::text::shell_word::quote_shell_word;

/// Folder of the base.
const BASE: &str = "base";
/// Text with the commands.
const README: &str = "README.md";
/// Maximum size of a weight file in bytes, unless a single tensor is larger.
const MAX_SHARD: usize = 4 << 30;

/// Export of a panel for serving.
pub struct PeftExport<'a> {
    /// The panel, as the user names it.
    pub panel: &'a str,
    /// The folder to write.
    pub out: &'a Path,
    /// The URL where the panel will be served.
    pub endpoint: &'a ServiceUrl,
}

/// An exported panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedPanel {
    /// The command that serves the panel.
    pub serve: String,
    /// The command that judges with it.
    pub judge: String,
}

impl PeftExport<'_> {
    /// Reads the panel and writes the export.
    ///
    /// # Errors
    ///
    /// The members are not adapters of one model, the layout of the hub does not have the model, or
    /// the folder has other files.
    pub fn write(&self, files: &PanelFiles, downloads: HubDownloads) -> Result<ExportedPanel> {
        check_folder(self.out)?;
        let panel = AdaptedPanel::read(files, self.panel, downloads)?;
        let rank = served_rank(panel.max_rank()).with_context(|| self.panel.to_owned())?;
        let base = BaseFiles::of_panel(&panel).with_context(|| self.panel.to_owned())?;
        let adapters =
            panel.adapters.iter().map(|adapters| AdapterFiles::of_member(&panel, adapters));
        let adapters = adapters.collect::<Result<Vec<_>>>()?;
        create_folder(self.out)?;
        remove_temporary_files(self.out)?;
        base.write(&self.out.join(BASE))?;
        for (name, files) in MEMBERS.iter().zip(&adapters) {
            let folder = self.out.join(name);
            create_folder(&folder)?;
            write_tensors(
                &files.tensors.iter().collect(),
                &folder.join("adapter_model.safetensors"),
            )?;
            write_json(&folder.join("adapter_config.json"), &files.config)?;
        }
        let text = readme(&panel, rank, self.endpoint);
        write_atomic(&self.out.join(README), text.as_bytes())?;
        // Last, because it makes the folder a panel.
        let text = served_file(&panel, self.endpoint)?;
        write_atomic(&self.out.join(SERVED_FILE), text.as_bytes())?;
        let folder = quote_shell_word(&self.out.display().to_string());
        Ok(ExportedPanel {
            serve: serve_command(&folder, rank, self.endpoint),
            judge: judge_command(&folder),
        })
    }
}

/// Files of the base.
struct BaseFiles {
    tensors: BTreeMap<String, Tensor>,
    json: Vec<(&'static str, Value)>,
    texts: Vec<(&'static str, String)>,
}

impl BaseFiles {
    /// Converts the base.
    fn of_panel(panel: &AdaptedPanel) -> Result<Self> {
        let member = panel.first_member()?;
        let decoder = &member.decoder;
        let vision = VisionConfigs::of_member(member, tower_layers(panel)?)?;
        let tokenizer = ServedTokenizer::new(&member.tokenizer.text, decoder.vocab_size)?;
        let chat_template = tokenizer.chat_template(&member.chat_template)?;
        let context = decoder.max_position_embeddings;
        Ok(Self {
            tensors: base_tensors(panel, tokenizer.vocabulary)?,
            json: vec![
                ("config.json", vision.model(decoder, &tokenizer, dtype_name(panel)?)?),
                ("preprocessor_config.json", vision.preprocessor()),
                ("processor_config.json", vision.processor()),
                ("tokenizer_config.json", tokenizer.config(&chat_template, context)),
            ],
            texts: vec![
                ("tokenizer.json", tokenizer.to_json()?),
                ("chat_template.jinja", chat_template),
            ],
        })
    }

    fn write(&self, folder: &Path) -> Result<()> {
        create_folder(folder)?;
        remove_temporary_files(folder)?;
        let shards = split_shards(&self.tensors);
        let mut index = BTreeMap::new();
        for (number, shard) in shards.iter().enumerate() {
            let file = match shards.len() {
                1 => "model.safetensors".to_owned(),
                count => format!("model-{:05}-of-{count:05}.safetensors", number + 1),
            };
            write_tensors(shard, &folder.join(&file))?;
            index.extend(shard.keys().map(|name| (*name, file.clone())));
        }
        if shards.len() > 1 {
            let size: usize = self.tensors.values().map(byte_len).sum();
            let index = json!({"metadata": {"total_size": size}, "weight_map": index});
            write_json(&folder.join("model.safetensors.index.json"), &index)?;
        }
        for (name, value) in &self.json {
            write_json(&folder.join(name), value)?;
        }
        for (name, text) in &self.texts {
            write_atomic(&folder.join(name), text.as_bytes())?;
        }
        Ok(())
    }
}

/// Tensors of a file.
type TensorShard<'a> = BTreeMap<&'a String, &'a Tensor>;

/// Distributes tensors to files.
fn split_shards(tensors: &BTreeMap<String, Tensor>) -> Vec<TensorShard<'_>> {
    let mut shards: Vec<TensorShard<'_>> = vec![BTreeMap::new()];
    let mut size = 0;
    for (name, tensor) in tensors {
        let len = byte_len(tensor);
        if size > 0 && size + len > MAX_SHARD {
            shards.push(BTreeMap::new());
            size = 0;
        }
        size += len;
        if let Some(last) = shards.last_mut() {
            last.insert(name, tensor);
        }
    }
    shards
}

fn byte_len(tensor: &Tensor) -> usize {
    tensor.elem_count() * tensor.dtype().size_in_bytes()
}

/// Writes tensors. Older versions of transformers reject a file without the format.
fn write_tensors(tensors: &TensorShard<'_>, path: &Path) -> Result<()> {
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let bytes = safetensors::serialize(tensors.iter().map(|(n, t)| (*n, *t)), Some(metadata));
    let bytes = bytes.with_context(|| format!("cannot write {}", path.display()))?;
    write_atomic(path, &bytes)
}

fn write_json(path: &Path, value: &Value) -> Result<()> {
    let text = serde_json::to_string_pretty(value).context("cannot write JSON")? + "\n";
    write_atomic(path, text.as_bytes())
}

/// Checks that a folder is new, empty, or has an earlier export.
fn check_folder(out: &Path) -> Result<()> {
    if !out.exists() {
        return Ok(());
    }
    create_folder(out)?;
    let own: Vec<&str> = MEMBERS.into_iter().chain([BASE, README, SERVED_FILE]).collect();
    let is_own = |name: &String| own.contains(&name.as_str());
    let other: Option<PathBuf> =
        list_names(out)?.iter().find(|name| !is_own(name)).map(|name| out.join(name));
    if let Some(other) = other {
        bail!(
            "--out {}: the folder contains {}, which is no file of an export\n\
             hint: choose an empty folder or one that does not exist",
            out.display(),
            other.display()
        );
    }
    Ok(())
}
