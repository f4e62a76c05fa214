//! Rows of numbers on disk, written once and read by place: what frozen layers computed.
//!
//! The file is a plain row after row, little-endian; beside it lies an index, which tells how many rows are on the disk
//! for good, and whether they are all. What stands behind them is of an interrupted run, and is written anew.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use candle::{DType, Device, Tensor};
use half::{bf16, f16};
use memmap2::Mmap;
use serde::{Deserialize, Serialize};

use crate::support::files::atomic_file;

/// The type in which rows are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActivationDtype {
    /// Half precision: enough for what a trunk computes, as long as it stays below 65,504.
    #[default]
    F16,
    /// Half the memory of `f32` with its range.
    Bf16,
    /// What was computed, to the bit.
    F32,
}

impl ActivationDtype {
    fn dtype(self) -> DType {
        match self {
            Self::F16 => DType::F16,
            Self::Bf16 => DType::BF16,
            Self::F32 => DType::F32,
        }
    }
}

/// What the rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ActivationIndex {
    dtype: ActivationDtype,
    width: usize,
    rows: usize,
    /// Whether no more are to come.
    whole: bool,
}

impl ActivationIndex {
    /// What is written beside rows, if anything.
    fn read(path: &Path) -> Result<Option<Self>> {
        let beside = index_path(path);
        let text = match std::fs::read_to_string(&beside) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("cannot read {}", beside.display()))?,
        };
        let index = serde_json::from_str(&text).with_context(|| beside.display().to_string())?;
        Ok(Some(index))
    }

    /// The bytes of all rows.
    fn bytes(&self) -> usize {
        self.rows * self.width * self.dtype.dtype().size_in_bytes()
    }
}

/// The file of the index of rows.
pub(crate) fn index_path(path: &Path) -> PathBuf {
    path.with_extension("rows.json")
}

/// Rows on their way to the disk.
pub(crate) struct ActivationWriter {
    path: PathBuf,
    file: BufWriter<File>,
    index: ActivationIndex,
}

impl ActivationWriter {
    /// Begins a file, or goes on with one that an interrupted run left.
    pub(crate) fn begin(path: &Path, dtype: ActivationDtype, width: usize) -> Result<Self> {
        let fresh = ActivationIndex {
            dtype,
            width,
            rows: 0,
            whole: false,
        };
        let alike = |before: &ActivationIndex| before.dtype == dtype && before.width == width;
        let index = ActivationIndex::read(path)?.filter(alike).unwrap_or(fresh);
        let open = || -> std::io::Result<(File, ActivationIndex)> {
            let mut options = OpenOptions::new();
            let mut file = options
                .create(true)
                .write(true)
                .truncate(false)
                .open(path)?;
            let there = file.metadata()?.len() >= index.bytes() as u64;
            let index = if there { index } else { fresh };
            file.set_len(index.bytes() as u64)?;
            file.seek(SeekFrom::End(0))?;
            Ok((file, index))
        };
        let (file, index) = open().with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::new(file),
            index,
        })
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.index.rows
    }

    /// Appends rows.
    ///
    /// # Shapes
    /// `(n, width)`.
    pub(crate) fn push(&mut self, rows: &Tensor) -> Result<()> {
        let (n, width) = rows.dims2()?;
        if width != self.index.width {
            bail!("rows of {width} values, expected {}", self.index.width);
        }
        let values = rows.to_dtype(self.index.dtype.dtype())?.flatten_all()?;
        let bytes: Vec<u8> = match self.index.dtype {
            ActivationDtype::F32 => values
                .to_vec1::<f32>()?
                .into_iter()
                .flat_map(f32::to_le_bytes)
                .collect(),
            ActivationDtype::Bf16 => {
                let values = values.to_vec1::<bf16>()?.into_iter();
                values.flat_map(bf16::to_le_bytes).collect()
            }
            ActivationDtype::F16 => {
                let values = values.to_vec1::<f16>()?;
                if !values.iter().all(|value| value.is_finite()) {
                    bail!(
                        "a hidden state is beyond the range of f16, or no number\n\
                         hint: store = \"bf16\" in the stage's table has the range of f32"
                    );
                }
                values.into_iter().flat_map(f16::to_le_bytes).collect()
            }
        };
        let written = self.file.write_all(&bytes);
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        self.index.rows += n;
        Ok(())
    }

    /// Puts what was written on the disk for good.
    pub(crate) fn keep(&mut self) -> Result<()> {
        let kept = self
            .file
            .flush()
            .and_then(|()| self.file.get_ref().sync_all());
        kept.with_context(|| format!("cannot write {}", self.path.display()))?;
        let index = serde_json::to_vec(&self.index)?;
        atomic_file::write(&index_path(&self.path), &index)
    }

    /// Ends the file, and opens it for reading.
    pub(crate) fn finish(mut self) -> Result<ActivationFile> {
        self.index.whole = true;
        self.keep()?;
        ActivationFile::open(&self.path)?.context("rows that were written are not there")
    }
}

/// Finished rows.
pub(crate) struct ActivationFile {
    map: Mmap,
    index: ActivationIndex,
}

impl ActivationFile {
    /// The rows of a file; `None` where they were never finished.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>> {
        let Some(index) = ActivationIndex::read(path)?.filter(|index| index.whole) else {
            return Ok(None);
        };
        let read = || format!("cannot read {}", path.display());
        let file = File::open(path).with_context(read)?;
        #[expect(
            unsafe_code,
            reason = "the folder belongs to this process alone, which holds its lock, and the file is written no more"
        )]
        let map = unsafe { Mmap::map(&file) }.with_context(read)?;
        let expected = index.bytes();
        if map.len() != expected {
            bail!(
                "{}: it has {} bytes, expected {expected}\nhint: delete it and {}, and run again",
                path.display(),
                map.len(),
                index_path(path).display()
            );
        }
        Ok(Some(Self { map, index }))
    }

    /// The rows at these places, as `f32`.
    ///
    /// # Shapes
    /// `n` places to `(n, width)`.
    pub(crate) fn at(&self, places: impl ExactSizeIterator<Item = usize>) -> Result<Tensor> {
        let width = self.index.width;
        let bytes = width * self.index.dtype.dtype().size_in_bytes();
        let shape = (places.len(), width);
        let mut values: Vec<f32> = Vec::with_capacity(places.len() * width);
        for place in places {
            let row = self.map.get(place * bytes..(place + 1) * bytes);
            let row = row.with_context(|| format!("there is no row {place}"))?;
            match self.index.dtype {
                ActivationDtype::F32 => {
                    let words = row.as_chunks::<4>().0.iter();
                    values.extend(words.map(|word| f32::from_le_bytes(*word)));
                }
                ActivationDtype::Bf16 => {
                    let words = row.as_chunks::<2>().0.iter();
                    values.extend(words.map(|word| bf16::from_le_bytes(*word).to_f32()));
                }
                ActivationDtype::F16 => {
                    let words = row.as_chunks::<2>().0.iter();
                    values.extend(words.map(|word| f16::from_le_bytes(*word).to_f32()));
                }
            }
        }
        Ok(Tensor::from_vec(values, shape, &Device::Cpu)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_by_place_in_every_type() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let rows = Tensor::arange(0f32, 12.0, &Device::Cpu)?.reshape((4, 3))?;
        for dtype in [
            ActivationDtype::F16,
            ActivationDtype::Bf16,
            ActivationDtype::F32,
        ] {
            let path = dir.path().join("kept.rows");
            let mut writer = ActivationWriter::begin(&path, dtype, 3)?;
            writer.push(&rows.narrow(0, 0, 1)?)?;
            writer.push(&rows.narrow(0, 1, 3)?)?;
            let kept = writer.finish()?;
            assert_eq!(kept.index.rows, 4);
            let got = kept.at([3, 0].into_iter())?.to_vec2::<f32>()?;
            assert_eq!(got, [[9.0, 10.0, 11.0], [0.0, 1.0, 2.0]]);
            assert!(kept.at([4].into_iter()).is_err());
        }
        Ok(())
    }

    #[test]
    fn an_interrupted_writer_goes_on_behind_what_it_kept() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("kept.rows");
        let rows = Tensor::arange(0f32, 8.0, &Device::Cpu)?.reshape((4, 2))?;
        let mut writer = ActivationWriter::begin(&path, ActivationDtype::F16, 2)?;
        writer.push(&rows.narrow(0, 0, 2)?)?;
        writer.keep()?;
        // On the disk, but not for good.
        writer.push(&(rows.narrow(0, 0, 1)? + 100.0)?)?;
        writer.file.flush()?;
        drop(writer);
        assert!(ActivationFile::open(&path)?.is_none());
        let mut writer = ActivationWriter::begin(&path, ActivationDtype::F16, 2)?;
        assert_eq!(writer.rows(), 2);
        writer.push(&rows.narrow(0, 2, 2)?)?;
        let kept = writer.finish()?.at(0..4)?;
        assert_eq!(kept.to_vec2::<f32>()?, rows.to_vec2::<f32>()?);
        // Rows of another form are no beginning of these.
        assert_eq!(
            ActivationWriter::begin(&path, ActivationDtype::F32, 2)?.rows(),
            0
        );
        Ok(())
    }

    #[test]
    fn cut_off_rows_and_those_beyond_the_type_are_errors() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("kept.rows");
        let large = Tensor::new(&[[1e6f32]], &Device::Cpu)?;
        let error = ActivationWriter::begin(&path, ActivationDtype::F16, 1)?.push(&large);
        assert!(error.unwrap_err().to_string().contains("bf16"));
        let mut writer = ActivationWriter::begin(&path, ActivationDtype::Bf16, 1)?;
        assert!(
            ActivationFile::open(&path)?.is_none(),
            "unfinished rows do not count"
        );
        writer.push(&large)?;
        drop(writer.finish()?);
        std::fs::write(&path, [0])?;
        let error = ActivationFile::open(&path).err().map(|e| e.to_string());
        assert!(error.is_some_and(|e| e.contains("kept.rows") && e.contains("hint:")));
        Ok(())
    }
}
