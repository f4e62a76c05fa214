//! Header of a GGUF file, parsed by Candle: metadata, and the offset of each tensor.
//!
//! Candle checks lengths and counts against the size of its input. This module adds checks for
//! errors that Candle accepts: an alignment of zero, duplicate names, strings that are not UTF-8,
//! and tensors that overlap, do not fit their type or exceed the file.

use std::collections::BTreeMap;
use std::io::Cursor;

use anyhow::{Context, Result, bail};
use candle::quantized::gguf_file::{Content, TensorInfo, Value};
use serde_json::{Number, Value as Json};

use crate::checkpoints::store::encoding::TensorEncoding;

/// Maximum header size in bytes. The largest vocabularies need 10 MiB. Candle needs up to 32 bytes
/// of memory per header byte.
pub(super) const MAX_HEADER_LEN: u64 = 32 << 20;
/// Size in bytes of magic number, version, number of tensors and number of metadata entries.
const PREAMBLE_LEN: usize = 24;
const ALIGNMENT_KEY: &str = "general.alignment";
const DEFAULT_ALIGNMENT: u64 = 32;
const DAMAGED_HINT: &str = "hint: the file is damaged; download it again";

/// Header of a GGUF file.
#[derive(Clone, Debug)]
pub(crate) struct GgufHeader {
    /// Metadata by key.
    pub metadata: BTreeMap<String, Value>,
    /// Tensors in the order of the file.
    pub tensors: Vec<GgufTensorInfo>,
    /// Offset of the tensor data in the file.
    pub(super) data_start: u64,
}

/// Type, shape and offset of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GgufTensorInfo {
    /// Name.
    pub name: String,
    /// Encoding.
    pub encoding: TensorEncoding,
    /// Shape, rows first.
    pub shape: Vec<usize>,
    /// Offset in the tensor data.
    pub(super) offset: u64,
    /// Size in bytes.
    pub(super) byte_len: u64,
}

impl GgufHeader {
    /// Parses the first bytes of a file of `len` bytes. Checks that the file contains all tensors.
    pub(super) fn parse(head: &[u8], len: u64) -> Result<Self> {
        let declared = parse_preamble(head)?;
        if has_zero_alignment(head) {
            bail!("{ALIGNMENT_KEY} is 0, expected a multiple of 8 up to 65536");
        }
        let mut reader = Cursor::new(head);
        let content = Content::read(&mut reader).context(
            "the header is damaged, truncated or not supported\n\
             hint: download the file again; supported types are F32, F16, BF16, Q2_K to Q6_K, Q4_0 \
             to Q5_1 and Q8_0",
        )?;
        if [content.tensor_infos.len(), content.metadata.len()].map(|n| n as u64) != declared {
            bail!("two tensors or two metadata entries have the same name\n{DAMAGED_HINT}");
        }
        if has_replaced_bytes(&content, head) {
            bail!("a string in the header is not UTF-8\n{DAMAGED_HINT}");
        }
        let infos = content.tensor_infos.into_iter();
        let tensors = infos
            .map(|(name, info)| {
                let context = format!("tensor `{name}`");
                GgufTensorInfo::new(name, &info).context(context)
            })
            .collect::<Result<_>>()?;
        let mut header =
            Self { metadata: content.metadata.into_iter().collect(), tensors, data_start: 0 };
        header.locate_tensors(reader.position(), len)?;
        Ok(header)
    }

    /// Sorts the tensors by offset. Checks that none overlaps another or exceeds the file.
    fn locate_tensors(&mut self, header_end: u64, len: u64) -> Result<()> {
        let alignment = match self.number(ALIGNMENT_KEY)? {
            None => DEFAULT_ALIGNMENT,
            Some(n @ 8..=65_536) if n % 8 == 0 => n,
            Some(n) => bail!("{ALIGNMENT_KEY} is {n}, expected a multiple of 8 up to 65536"),
        };
        self.data_start = header_end.next_multiple_of(alignment);
        let available = len.saturating_sub(self.data_start);
        self.tensors.sort_by(|a, b| (a.offset, &a.name).cmp(&(b.offset, &b.name)));
        let mut end = 0;
        for info in &self.tensors {
            let name = &info.name;
            if info.offset < end || info.offset % 2 != 0 {
                bail!(
                    "tensor `{name}`: invalid offset {}, overlapping or odd\n{DAMAGED_HINT}",
                    info.offset
                );
            }
            let tensor_end = info.offset.checked_add(info.byte_len);
            end = match tensor_end.filter(|end| *end <= available) {
                Some(end) => end,
                None => bail!(
                    "tensor `{name}`: expected {} bytes at offset {}, but the tensor data have \
                     {available} bytes\n\
                     hint: the file was truncated or changed; download it again",
                    info.byte_len,
                    info.offset
                ),
            };
        }
        Ok(())
    }

    /// Returns an unsigned integer, if the key exists.
    pub(crate) fn number(&self, key: &str) -> Result<Option<u64>> {
        self.get(key, "an unsigned integer", |value| to_json(value)?.as_u64())
    }

    /// Returns a string, if the key exists.
    pub(crate) fn string(&self, key: &str) -> Result<Option<&str>> {
        self.get(key, "a string", as_string)
    }

    /// Returns a boolean, if the key exists.
    pub(crate) fn boolean(&self, key: &str) -> Result<Option<bool>> {
        self.get(key, "true or false", |value| to_json(value)?.as_bool())
    }

    /// Returns a list of strings, if the key exists.
    pub(crate) fn strings(&self, key: &str) -> Result<Option<Vec<&str>>> {
        self.get(key, "a list of strings", |value| match value {
            Value::Array(list) => list.iter().map(as_string).collect(),
            _ => None,
        })
    }

    /// Returns a list of finite numbers, if the key exists.
    pub(crate) fn numbers(&self, key: &str) -> Result<Option<Vec<f64>>> {
        self.get(key, "a list of finite numbers", |value| match value {
            Value::Array(list) => list.iter().map(|value| to_json(value)?.as_f64()).collect(),
            _ => None,
        })
    }

    fn get<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        convert: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let value = self.metadata.get(key);
        let value =
            value.map(|value| convert(value).with_context(|| format!("{key} is not {expected}")));
        value.transpose()
    }

    /// Returns a tensor by name.
    pub(crate) fn tensor(&self, name: &str) -> Option<&GgufTensorInfo> {
        self.tensors.iter().find(|info| info.name == name)
    }
}

impl GgufTensorInfo {
    fn new(name: String, info: &TensorInfo) -> Result<Self> {
        let shape = info.shape.dims().to_vec();
        let encoding = TensorEncoding::from_ggml_type(info.ggml_dtype).with_context(|| {
            format!(
                "type {:?} is not supported\nhint: use another file of this model",
                info.ggml_dtype
            )
        })?;
        let bytes = encoding.byte_len(&shape).with_context(|| {
            format!("shape {shape:?} does not fit type {}\n{DAMAGED_HINT}", encoding.name())
        })?;
        Ok(Self { offset: info.offset, name, encoding, shape, byte_len: bytes as u64 })
    }
}

/// Returns the numbers of tensors and metadata entries. Checks magic number and version.
fn parse_preamble(head: &[u8]) -> Result<[u64; 2]> {
    let Some((preamble, _)) = head.split_first_chunk::<PREAMBLE_LEN>() else {
        bail!("truncated after {} bytes\nhint: download the file again", head.len());
    };
    let (words, _) = preamble.as_chunks::<8>();
    let [first, tensors, entries] =
        [0, 1, 2].map(|i| words.get(i).map_or(0, |word| u64::from_le_bytes(*word)));
    let (magic, version) = (first as u32, first >> 32);
    if magic.to_le_bytes() != *b"GGUF" {
        bail!("not a GGUF file\nhint: use a file that begins with the bytes `GGUF`");
    }
    if !matches!(version, 2 | 3) {
        bail!(
            "GGUF version {version}, expected 2 or 3, little-endian\n\
             hint: convert the original checkpoint again with a current version of llama.cpp"
        );
    }
    Ok([tensors, entries])
}

/// Returns true if the bytes contain an alignment of zero, which makes Candle 0.11.1 divide by
/// zero.
fn has_zero_alignment(head: &[u8]) -> bool {
    let key = ALIGNMENT_KEY.as_bytes();
    let windows = head.windows(8 + key.len()).enumerate();
    let positions = windows.filter(|(_, window)| window.ends_with(key));
    positions.filter_map(|(i, _)| is_zero_alignment(head.get(i..)?)).any(|zero| zero)
}

/// Returns true if an entry, starting at its key length, is an alignment of zero. Candle ignores
/// NUL after a key.
fn is_zero_alignment(entry: &[u8]) -> Option<bool> {
    let (len, rest) = entry.split_first_chunk::<8>()?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
    let (key, rest) = rest.split_at_checked(len)?;
    let (value_type, rest) = rest.split_first_chunk::<4>()?;
    let value_len = match u32::from_le_bytes(*value_type) {
        0 | 1 => 1,
        2 | 3 => 2,
        4 | 5 => 4,
        _ => return None,
    };
    let zeros = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    Some(zeros(key.strip_prefix(ALIGNMENT_KEY.as_bytes())?) && zeros(rest.get(..value_len)?))
}

/// Returns true if Candle replaced invalid UTF-8. The parsed strings then have more replacement
/// characters than the file.
fn has_replaced_bytes(content: &Content, head: &[u8]) -> bool {
    const REPLACEMENT: &str = "\u{FFFD}";
    fn count(value: &Value) -> usize {
        match value {
            Value::String(text) => text.matches(REPLACEMENT).count(),
            Value::Array(values) => values.iter().map(count).sum(),
            _ => 0,
        }
    }
    let names = content.metadata.keys().chain(content.tensor_infos.keys());
    let names: usize = names.map(|key| key.matches(REPLACEMENT).count()).sum();
    let in_strings = names + content.metadata.values().map(count).sum::<usize>();
    let in_file = head.windows(REPLACEMENT.len()).filter(|bytes| *bytes == REPLACEMENT.as_bytes());
    in_strings > in_file.count()
}

fn as_string(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Converts a value to JSON; `None` for a number that is not finite.
///
/// An f32 becomes the shortest decimal that rounds to it. A list becomes a string with its length.
pub(crate) fn to_json(value: &Value) -> Option<Json> {
    let float = |value: f64| Number::from_f64(value).map(Json::Number);
    Some(match value {
        Value::U8(n) => (*n).into(),
        Value::I8(n) => (*n).into(),
        Value::U16(n) => (*n).into(),
        Value::I16(n) => (*n).into(),
        Value::U32(n) => (*n).into(),
        Value::I32(n) => (*n).into(),
        Value::U64(n) => (*n).into(),
        Value::I64(n) => (*n).into(),
        Value::F32(n) => n.to_string().parse().ok().and_then(float)?,
        Value::F64(n) => float(*n)?,
        Value::Bool(truth) => (*truth).into(),
        Value::String(text) => text.as_str().into(),
        Value::Array(list) => format!("a list of {}", list.len()).into(),
    })
}
