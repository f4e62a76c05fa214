//! A `SentencePiece` model as a tokenizer, converted as transformers does for Llama
//! (`LlamaConverter` in its `convert_slow_tokenizer.py`, in the form that equals `SentencePiece`).
//!
//! The file is a protocol buffer (`sentencepiece_model.proto`), of which a few fields count.

use std::collections::HashMap;

use anyhow::{Context, Result, anyhow, bail};
use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as Decoders;
use tokenizers::decoders::strip::Strip;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::replace::ReplacePattern;
use tokenizers::normalizers::{self, Prepend, Replace, Sequence};
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, Tokenizer};

/// How `SentencePiece` writes a space.
const SPACE: &str = "\u{2581}";
/// Kinds of pieces.
const UNKNOWN: u64 = 2;
pub(super) const CONTROL: u64 = 3;
pub(super) const USER: u64 = 4;
/// Longest piece in bytes; `SentencePiece` makes none of more than 16 letters by itself.
const LONGEST: usize = 4096;
/// The kind of model that joins pairs.
const PAIRS: u64 = 2;

/// What counts in a model's file.
pub(super) struct Model {
    /// Its pieces and their kinds, by their ids.
    pub pieces: Vec<(String, u64)>,
    /// The score of each piece, the best being joined first; where it is empty, the first is best.
    pub scores: Vec<f64>,
    /// The kind of model.
    pub kind: u64,
    /// Whether letters that it does not know are spelled in bytes.
    pub byte_fallback: bool,
    /// The id of the piece for what it cannot spell.
    pub unknown: usize,
    /// The id of the piece that texts begin with.
    pub start: usize,
    /// Whether texts are read as if a space stood before them.
    pub prefix: bool,
    /// The rules by which it changes letters before all else; empty for none.
    charsmap: usize,
    collapses: bool,
}

impl Default for Model {
    /// No pieces; all else as in a file that does not say it.
    fn default() -> Self {
        Self {
            pieces: Vec::new(),
            scores: Vec::new(),
            kind: 1,
            byte_fallback: false,
            unknown: 0,
            start: 1,
            prefix: true,
            charsmap: 0,
            collapses: true,
        }
    }
}

/// The tokenizer of a model's file. `start`: whether texts begin with the beginning-of-sequence token.
pub(super) fn convert(bytes: &[u8], start: bool) -> Result<Tokenizer> {
    let model = Model::parse(bytes).context("it is not a SentencePiece model")?;
    if model.kind != PAIRS {
        bail!(
            "its model_type is {}, only that of byte-pair encoding (2) is supported\n\
             hint: use a checkpoint that brings tokenizer.json",
            model.kind
        );
    }
    if model.charsmap > 0 {
        bail!(
            "it changes letters by a table of {} bytes before it reads them, which is not \
             supported\nhint: use a checkpoint that brings tokenizer.json",
            model.charsmap
        );
    }
    model.tokenizer(start)
}

impl Model {
    /// What a GGUF file says of such a model (llama.cpp's `llm_tokenizer_spm`): pairs, and spaces
    /// left as they are.
    pub(super) fn of_gguf(pieces: Vec<(String, u64)>, scores: Vec<f64>) -> Self {
        Self {
            pieces,
            scores,
            kind: PAIRS,
            byte_fallback: true,
            collapses: false,
            ..Self::default()
        }
    }

    /// The tokenizer. `start`: whether texts begin with the beginning-of-sequence token.
    pub(super) fn tokenizer(&self, start: bool) -> Result<Tokenizer> {
        let merges = merges(&self.pieces, &self.scores);
        let unknown = self.pieces.get(self.unknown);
        let (unknown, _) = unknown.context("no unknown piece")?;
        let ids = (0u32..).zip(&self.pieces);
        let vocabulary: Vocab = ids.map(|(id, (piece, _))| (piece.clone(), id)).collect();
        let bpe = BPE::builder()
            .vocab_and_merges(vocabulary, merges)
            .unk_token(unknown.clone())
            .fuse_unk(true)
            .byte_fallback(self.byte_fallback)
            .build()
            .map_err(|error| anyhow!("{error}"))?;
        let mut tokenizer = Tokenizer::new(bpe);
        dress(&mut tokenizer, self)?;
        if let (true, Some((piece, CONTROL))) = (start, self.pieces.get(self.start)) {
            let id = u32::try_from(self.start)?;
            let template = TemplateProcessing::builder()
                .try_single(format!("{piece} $A"))
                .map_err(|error| anyhow!("{error}"))?
                .special_tokens(vec![(piece.clone(), id)])
                .build()?;
            tokenizer.with_post_processor(Some(template));
        }
        Ok(tokenizer)
    }
}

/// Spaces in and out, and the control tokens.
fn dress(tokenizer: &mut Tokenizer, model: &Model) -> Result<()> {
    let wrong = |error: tokenizers::Error| anyhow!("{error}");
    let mut steps = Vec::new();
    if model.collapses {
        let runs = ReplacePattern::Regex(" {2,}".to_owned());
        let ends = normalizers::Strip::new(true, true);
        steps.push(Replace::new(runs, " ").map_err(wrong)?.into());
        steps.push(ends.into());
    }
    if model.prefix {
        steps.push(Prepend::new(SPACE.to_owned()).into());
    }
    steps.push(Replace::new(" ", SPACE).map_err(wrong)?.into());
    tokenizer
        .with_normalizer(Some(Sequence::new(steps)))
        .map_err(wrong)?;
    let mut decoders = vec![
        Replace::new(SPACE, " ").map_err(wrong)?.into(),
        ByteFallback::new().into(),
        Fuse::new().into(),
    ];
    if model.prefix {
        decoders.push(Strip::new(' ', 1, 0).into());
    }
    tokenizer.with_decoder(Some(Decoders::new(decoders)));
    for (piece, kind) in &model.pieces {
        let token = AddedToken::from(piece.clone(), *kind != USER).normalized(false);
        match *kind {
            UNKNOWN | CONTROL => tokenizer.add_special_tokens([token]).map_err(wrong)?,
            USER => tokenizer.add_tokens([token]).map_err(wrong)?,
            _ => 0,
        };
    }
    Ok(())
}

/// All pairs of pieces that make a piece, those of better pieces first, else of earlier ones
/// (`generate_merges` in transformers' `tokenization_utils_base.py`).
fn merges(pieces: &[(String, u64)], scores: &[f64]) -> Vec<(String, String)> {
    let score = |place: &usize| scores.get(*place).copied().unwrap_or(0.0);
    let mut best: Vec<usize> = (0..pieces.len()).collect();
    best.sort_by(|a, b| score(b).total_cmp(&score(a)));
    let mut ranks = vec![0; pieces.len()];
    for (rank, place) in best.into_iter().enumerate() {
        if let Some(slot) = ranks.get_mut(place) {
            *slot = rank;
        }
    }
    let ids: HashMap<&str, usize> = pieces.iter().map(|(p, _)| p.as_str()).zip(0..).collect();
    let mut merges = Vec::new();
    for (whole, (piece, _)) in ranks.into_iter().zip(pieces) {
        let cuts = piece.char_indices().skip(1);
        let mut pairs: Vec<(usize, usize, &str, &str)> = cuts
            .filter_map(|(cut, _)| {
                let (left, right) = piece.split_at_checked(cut)?;
                Some((*ids.get(left)?, *ids.get(right)?, left, right))
            })
            .collect();
        pairs.sort_unstable();
        merges.extend(pairs.into_iter().map(|(_, _, left, right)| {
            let lengths = (left.chars().count(), right.chars().count());
            ((whole, lengths), (left.to_owned(), right.to_owned()))
        }));
    }
    merges.sort_by_key(|(rank, _)| *rank);
    merges.into_iter().map(|(_, pair)| pair).collect()
}

impl Model {
    fn parse(bytes: &[u8]) -> Result<Self> {
        let mut model = Self::default();
        for field in Message(bytes) {
            match field? {
                (1, Value::Bytes(piece)) => model.pieces.push(self::piece(piece)?),
                (2, Value::Bytes(trainer)) => model.trainer(trainer)?,
                (3, Value::Bytes(normalizer)) => model.normalizer(normalizer)?,
                _ => {}
            }
        }
        if model.pieces.is_empty() {
            bail!("it holds no pieces");
        }
        Ok(model)
    }

    fn trainer(&mut self, bytes: &[u8]) -> Result<()> {
        for field in Message(bytes) {
            match field? {
                (3, Value::Number(kind)) => self.kind = kind,
                (35, Value::Number(on)) => self.byte_fallback = on != 0,
                (40, Value::Number(id)) => self.unknown = usize::try_from(id)?,
                // A model without such a token says -1.
                (41, Value::Number(id)) => self.start = usize::try_from(id).unwrap_or(usize::MAX),
                _ => {}
            }
        }
        Ok(())
    }

    fn normalizer(&mut self, bytes: &[u8]) -> Result<()> {
        for field in Message(bytes) {
            match field? {
                (2, Value::Bytes(charsmap)) => self.charsmap = charsmap.len(),
                (3, Value::Number(on)) => self.prefix = on != 0,
                (4, Value::Number(on)) => self.collapses = on != 0,
                _ => {}
            }
        }
        Ok(())
    }
}

/// A piece and its kind. Its score only says its rank, which is its place too.
fn piece(bytes: &[u8]) -> Result<(String, u64)> {
    let mut piece = (String::new(), 1);
    for field in Message(bytes) {
        match field? {
            (1, Value::Bytes(text)) if text.len() > LONGEST => {
                bail!("it holds a piece of {} bytes", text.len())
            }
            (1, Value::Bytes(text)) => std::str::from_utf8(text)?.clone_into(&mut piece.0),
            (3, Value::Number(kind)) => piece.1 = kind,
            _ => {}
        }
    }
    Ok(piece)
}

/// A protocol buffer's message, field by field.
struct Message<'a>(&'a [u8]);

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Other,
}

impl<'a> Message<'a> {
    fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for place in 0..10 {
            let (byte, rest) = self.0.split_first().context("it is cut off")?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        bail!("a number is too long")
    }

    fn take(&mut self, n: u64) -> Result<&'a [u8]> {
        let split = self.0.split_at_checked(usize::try_from(n)?);
        let (taken, rest) = split.context("it is cut off")?;
        self.0 = rest;
        Ok(taken)
    }

    fn field(&mut self) -> Result<(u64, Value<'a>)> {
        let tag = self.number()?;
        let value = match tag & 7 {
            0 => Value::Number(self.number()?),
            1 => {
                self.take(8)?;
                Value::Other
            }
            2 => {
                let n = self.number()?;
                Value::Bytes(self.take(n)?)
            }
            5 => {
                self.take(4)?;
                Value::Other
            }
            kind => bail!("a field of the unknown kind {kind}"),
        };
        Ok((tag >> 3, value))
    }
}

impl<'a> Iterator for Message<'a> {
    type Item = Result<(u64, Value<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_model_is_an_error() {
        for bad in [
            &b""[..],
            b"\x0a\xff",
            b"\x0a\x02\x0a\x05",
            b"\x0f",
            b"not a model",
        ] {
            assert!(convert(bad, true).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn pairs_of_earlier_pieces_come_first() {
        let pieces = ["a", "b", "ab", "aba", "ba"].map(|p| (p.to_owned(), 1));
        let joined = |scores: &[f64]| -> Vec<String> {
            let merges = merges(&pieces, scores);
            merges.iter().map(|(l, r)| format!("{l}+{r}")).collect()
        };
        assert_eq!(joined(&[]), ["a+b", "a+ba", "ab+a", "b+a"]);
        // Better ones before earlier ones.
        let scores = [0.0, 0.0, -3.0, -2.0, -1.0];
        assert_eq!(joined(&scores), ["b+a", "a+ba", "ab+a", "a+b"]);
    }
}
