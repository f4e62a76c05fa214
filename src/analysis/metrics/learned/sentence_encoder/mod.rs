//! Sentence embeddings: one vector for each text, as sentence-transformers and `SimCSE` compute
//! them.
//!
//! A folder of sentence-transformers says how the states of the tokens are pooled. Without
//! `modules.json`, the folder is read as a checkpoint of `SimCSE` (Gao et al. 2021;
//! `simcse/tool.py`): the state of the first token through BERT's pooler if the checkpoint has one,
//! scaled to length one. Texts are embedded one at a time, so that embeddings depend on no other
//! text.

mod modules;
mod pooling;

use anyhow::{Context, Result, ensure};
use candle::IndexOp;
use rayon::prelude::*;
use serde::Serialize;

use self::modules::{InputLimits, MODULES_FILE, SentenceModules};
use self::pooling::{PoolingMode, normalize};
use super::model::{Bert, BertPooler, EncodedText, ModelSource};
use crate::checkpoints::file_filter::FileFilter;
use crate::checkpoints::hub::HubArgs;
use crate::support::device::Placement;

/// Number of texts between two calls of the progress function.
const TEXTS_PER_WINDOW: usize = 32;

/// An encoder of whole texts.
pub struct SentenceEncoder {
    /// What the encoder is.
    pub summary: EncoderSummary,
    bert: Bert,
    pooling: Pooling,
    is_normalized: bool,
    is_lower_case: bool,
    folder: String,
}

/// Model and pooling of an encoder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EncoderSummary {
    /// Name given by the user, with the commit for hub checkpoints.
    pub model: String,
    /// Hash of the weights.
    pub weights: String,
    /// The pooling in words, and where it comes from.
    pub pooling: String,
    /// Number of components of an embedding.
    pub width: usize,
    /// Number of tokens to which texts are truncated, start and end tokens included.
    pub max_tokens: usize,
}

/// Embeddings of texts.
#[derive(Clone, Debug, PartialEq)]
pub struct TextEmbeddings {
    /// One embedding for each text.
    pub vectors: Vec<Vec<f64>>,
    /// Number of texts that were truncated.
    pub truncated: usize,
}

/// What makes an embedding of the states of all tokens.
enum Pooling {
    /// BERT's pooler on the first token.
    Pooler(BertPooler),
    /// Poolings, concatenated.
    Modes(Vec<PoolingMode>),
}

impl SentenceEncoder {
    /// Loads an encoder from a folder or from the hub. `flag` is the user's flag, for messages.
    ///
    /// # Errors
    /// If a file is missing, malformed or not supported. Errors name the file.
    pub fn load(
        flag: &str,
        model: &str,
        placement: &Placement,
        hub: HubArgs,
        quiet: bool,
    ) -> Result<Self> {
        let source = ModelSource::open(flag, model, &FileFilter::SentenceEncoder, hub, quiet)?;
        let modules = SentenceModules::read(&source.folder)?;
        let limits = InputLimits::read(&source.folder)?;
        let whole = Bert::load_whole(&source, limits.max_tokens, placement)?;
        let folder = source.folder.display().to_string();
        let is_normalized = modules.as_ref().is_none_or(|modules| modules.is_normalized);
        let (pooling, origin) = match (modules, whole.pooler) {
            (Some(modules), _) => {
                let found = modules.width.unwrap_or(whole.width);
                ensure!(
                    found == whole.width,
                    "{folder}: the pooling expects {found} components, the encoder has {}\n\
                     hint: download all files of the encoder again",
                    whole.width
                );
                (Pooling::Modes(modules.modes), "modules.json".to_owned())
            }
            (None, Some(pooler)) => {
                (Pooling::Pooler(pooler), format!("as SimCSE; no {MODULES_FILE}"))
            }
            (None, None) => {
                let origin = format!("no {MODULES_FILE} and no pooler in the weights");
                (Pooling::Modes(vec![PoolingMode::Cls]), origin)
            }
        };
        let summary = EncoderSummary {
            model: source.display_name(),
            weights: whole.hash,
            pooling: format!("{} ({origin})", pooling.describe()),
            width: whole.width * pooling.parts(),
            max_tokens: whole.bert.tokenizer.max_tokens,
        };
        let is_lower_case = limits.is_lower_case;
        Ok(Self { summary, bert: whole.bert, pooling, is_normalized, is_lower_case, folder })
    }

    /// Embeds texts and reports the number of completed ones.
    ///
    /// # Errors
    /// If a text cannot be tokenised, or an embedding is not finite.
    pub fn embed(&self, texts: &[&str], progress: &mut dyn FnMut(usize)) -> Result<TextEmbeddings> {
        let mut embeddings = TextEmbeddings { vectors: Vec::new(), truncated: 0 };
        for window in texts.chunks(TEXTS_PER_WINDOW) {
            let embedded: Result<Vec<(Vec<f64>, bool)>> = if self.bert.device.is_cpu() {
                window.par_iter().map(|text| self.embed_text(text)).collect()
            } else {
                window.iter().map(|text| self.embed_text(text)).collect()
            };
            for (vector, is_truncated) in embedded? {
                embeddings.vectors.push(vector);
                embeddings.truncated += usize::from(is_truncated);
            }
            progress(embeddings.vectors.len());
        }
        Ok(embeddings)
    }

    /// Returns the embedding of a text, and whether it was truncated.
    fn embed_text(&self, text: &str) -> Result<(Vec<f64>, bool)> {
        let lower = self.is_lower_case.then(|| text.to_lowercase());
        let EncodedText { ids, is_truncated } =
            self.bert.tokenizer.encode(lower.as_deref().unwrap_or(text))?;
        let states = || -> candle::Result<Vec<Vec<f32>>> {
            let states = self.bert.hidden_states(&[&ids])?.i(0)?; // (t, c)
            match &self.pooling {
                Pooling::Pooler(pooler) => pooler.forward(&states.narrow(0, 0, 1)?)?.to_vec2(),
                Pooling::Modes(_) => states.to_vec2(),
            }
        };
        let states = states().with_context(|| self.folder.clone())?;
        let mut vector = match &self.pooling {
            Pooling::Pooler(_) => PoolingMode::Cls.pool(&states),
            Pooling::Modes(modes) => modes.iter().flat_map(|mode| mode.pool(&states)).collect(),
        };
        ensure!(
            vector.iter().all(|x| x.is_finite()),
            "{}: an embedding is not finite\nhint: the weights are damaged; download them again",
            self.folder
        );
        if self.is_normalized {
            normalize(&mut vector);
        }
        Ok((vector, is_truncated))
    }
}

impl Pooling {
    /// Returns the number of concatenated parts.
    fn parts(&self) -> usize {
        match self {
            Self::Pooler(_) => 1,
            Self::Modes(modes) => modes.len(),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Pooler(_) => "first token through BERT's pooler".to_owned(),
            Self::Modes(modes) => {
                let names: Vec<&str> = modes.iter().map(|mode| mode.describe()).collect();
                names.join(" and ")
            }
        }
    }
}
