//! What stands before the values in a GGUF file: metadata, and which bytes are which tensor.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use anyhow::{Context, Result, bail};
use serde_json::Value as Json;

use super::value::{List, Source, Value};
use crate::checkpoints::store::encoding::TensorEncoding;

const MAGIC: [u8; 4] = *b"GGUF";
/// Most pieces of metadata and most tensors; the largest models have 100 and 3000.
const PIECES: u64 = 1 << 16;
/// Most dimensions of a tensor (`GGML_MAX_DIMS`).
const DIMENSIONS: u32 = 4;
/// Tensors begin at multiples of this where the file does not say it.
const ALIGNMENT: u64 = 32;

/// A header.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    /// The metadata by its keys.
    pub metadata: BTreeMap<String, Value>,
    /// The tensors as they lie in the file.
    pub tensors: Vec<Info>,
    /// Where the first of them may lie.
    pub(super) start: u64,
}

/// A tensor's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Info {
    /// Its name.
    pub name: String,
    /// Its type.
    pub encoding: TensorEncoding,
    /// Its shape, rows first.
    pub shape: Vec<usize>,
    /// Where it begins, counted from the first byte of all tensors.
    pub(super) offset: u64,
    /// The bytes it takes.
    pub(super) bytes: u64,
}

impl Header {
    /// Reads the header of a file of `len` bytes, and finds all its tensors inside the file.
    pub(super) fn read<R: Read>(source: &mut Source<R>, len: u64) -> Result<Self> {
        if source.u32()?.to_le_bytes() != MAGIC {
            bail!("it is not a GGUF file\nhint: such a file begins with the letters GGUF");
        }
        let version = source.u32()?;
        if !matches!(version, 2 | 3) {
            bail!(
                "it is of version {version}, expected 2 or 3, least byte first\n\
                 hint: convert the original checkpoint again with today's llama.cpp"
            );
        }
        let (tensors, pieces) = (source.u64()?, source.u64()?);
        if tensors > PIECES || pieces > PIECES {
            bail!(
                "it should hold {tensors} tensors and {pieces} pieces of metadata, more than \
                 {PIECES}\nhint: the file is damaged; fetch it again"
            );
        }
        let mut metadata = BTreeMap::new();
        for _ in 0..pieces {
            let key = source.text()?;
            let value = source.value().with_context(|| format!("`{key}`"))?;
            if metadata.insert(key.clone(), value).is_some() {
                bail!("it says `{key}` twice\nhint: the file is damaged; fetch it again");
            }
        }
        let mut infos = Vec::new();
        for _ in 0..tensors {
            infos.push(info(source)?);
        }
        let mut header = Self {
            metadata,
            tensors: infos,
            start: 0,
        };
        header.place(source.read, len)?;
        Ok(header)
    }

    /// Puts the tensors in the order of the file, and finds each whole and for itself.
    fn place(&mut self, read: u64, len: u64) -> Result<()> {
        let alignment = match self.number("general.alignment")? {
            None => ALIGNMENT,
            Some(n @ 8..=65_536) if n % 8 == 0 => n,
            Some(n) => bail!("general.alignment is {n}, expected a multiple of 8 up to 65536"),
        };
        self.start = read.next_multiple_of(alignment);
        let there = len.saturating_sub(self.start);
        self.tensors.sort_by_key(|info| info.offset);
        let mut names = BTreeSet::new();
        let mut end = 0;
        for info in &self.tensors {
            let name = &info.name;
            if !names.insert(name) {
                bail!(
                    "it holds a tensor `{name}` twice\nhint: the file is damaged; fetch it again"
                );
            }
            if info.offset < end || info.offset % 2 != 0 {
                bail!(
                    "tensor `{name}` should begin at {}, inside another\n\
                     hint: the file is damaged; fetch it again",
                    info.offset
                );
            }
            let after = info.offset.checked_add(info.bytes);
            end = match after.filter(|end| *end <= there) {
                Some(end) => end,
                None => bail!(
                    "tensor `{name}` should take {} bytes at {}, the file has {there} for all of \
                     them\nhint: the file was cut off or changed; fetch it again",
                    info.bytes,
                    info.offset
                ),
            };
        }
        Ok(())
    }

    /// A whole number, where it is there.
    pub(crate) fn number(&self, key: &str) -> Result<Option<u64>> {
        let Some(value) = self.metadata.get(key) else {
            return Ok(None);
        };
        match value {
            Value::One(Json::Number(n)) if n.is_u64() => Ok(n.as_u64()),
            _ => bail!("{key} is not a whole number"),
        }
    }

    /// A text, where it is there.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&str>> {
        match self.metadata.get(key) {
            None => Ok(None),
            Some(Value::One(Json::String(text))) => Ok(Some(text)),
            Some(_) => bail!("{key} is not a text"),
        }
    }

    /// A truth value, where it is there.
    pub(crate) fn truth(&self, key: &str) -> Result<Option<bool>> {
        match self.metadata.get(key) {
            None => Ok(None),
            Some(Value::One(Json::Bool(value))) => Ok(Some(*value)),
            Some(_) => bail!("{key} is not true or false"),
        }
    }

    /// A list, where it is there.
    pub(crate) fn list(&self, key: &str) -> Result<Option<&List>> {
        match self.metadata.get(key) {
            None => Ok(None),
            Some(Value::List(list)) => Ok(Some(list)),
            Some(_) => bail!("{key} is not a list"),
        }
    }

    /// A tensor's place.
    pub(crate) fn tensor(&self, name: &str) -> Option<&Info> {
        self.tensors.iter().find(|info| info.name == name)
    }
}

fn info<R: Read>(source: &mut Source<R>) -> Result<Info> {
    let name = source.text()?;
    let mut shape = || {
        let dimensions = source.u32()?;
        if dimensions > DIMENSIONS {
            bail!("it should have {dimensions} dimensions, more than {DIMENSIONS}");
        }
        let mut shape = Vec::new();
        for _ in 0..dimensions {
            shape.push(usize::try_from(source.u64()?)?);
        }
        shape.reverse();
        let number = source.u32()?;
        let encoding = TensorEncoding::of_ggml(number).with_context(|| {
            format!(
                "it is of the GGML type {number}, which is not read\n\
                 hint: F32, F16, BF16, Q2_K to Q6_K, Q4_0 to Q5_1 and Q8_0 are; take another file \
                 of this model"
            )
        })?;
        let bytes = encoding.bytes(&shape).with_context(|| {
            format!(
                "its shape {shape:?} does not fit its type {}\n\
                 hint: the file is damaged; fetch it again",
                encoding.name()
            )
        })?;
        Ok((shape, encoding, bytes as u64))
    };
    let (shape, encoding, bytes) = shape().with_context(|| format!("tensor `{name}`"))?;
    Ok(Info {
        offset: source.u64()?,
        name,
        encoding,
        shape,
        bytes,
    })
}
