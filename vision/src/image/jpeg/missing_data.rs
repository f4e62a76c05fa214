//! Detects JPEG files whose image data ends early although an end marker follows.
//!
//! Decoders fill the missing part with grey or with the coarse image of the first scans. This
//! module reads the codes of every scan without computing pixels, and counts the blocks.

use super::bit_reader::{BitReader, CodeError, HuffmanTable};
use super::block::{BlockCoding, ScanPosition};
use super::frame::{Frame, FrameComponent, Scan};
use super::restart_intervals::RestartIntervals;
use super::segments::{END_OF_IMAGE, JpegSegments, START_OF_SCAN};

/// Returns true if the file ends before the data of its image.
///
/// Returns false for files that are damaged in another way or use another coding, which the decoder
/// reports.
pub(in crate::image) fn is_data_missing(bytes: &[u8]) -> bool {
    let mut checker = None;
    let mut tables = HuffmanTables::default();
    let mut restart_interval = 0;
    for segment in JpegSegments::new(bytes) {
        match segment.code {
            0xc0..=0xc2 if checker.is_none() => {
                let Some(frame) = Frame::parse(segment.code, segment.payload) else {
                    return false;
                };
                checker = Some(DataChecker::new(frame));
            }
            0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => return false,
            0xc4 => tables.read(segment.payload),
            0xdd => {
                let interval = segment.payload.first_chunk().map_or(0, |b| u16::from_be_bytes(*b));
                restart_interval = usize::from(interval);
            }
            START_OF_SCAN => {
                let Some(checker) = &mut checker else {
                    return false;
                };
                let Some(scan) = Scan::parse(segment.payload, &checker.frame) else {
                    return false;
                };
                let intervals = RestartIntervals::new(segment.after, restart_interval);
                match checker.check_scan(&scan, &tables, intervals) {
                    Ok(()) => {}
                    Err(CodeError::EndOfData) => return true,
                    Err(CodeError::InvalidCode) => return false,
                }
            }
            END_OF_IMAGE => break,
            _ => {}
        }
    }
    checker.is_some_and(|checker| checker.has_missing_coefficients())
}

/// Huffman tables by number.
#[derive(Default)]
struct HuffmanTables {
    dc: [Option<HuffmanTable>; 4],
    ac: [Option<HuffmanTable>; 4],
}

impl HuffmanTables {
    /// Reads the tables of a segment (B.2.4.2). A malformed table is left out.
    fn read(&mut self, mut payload: &[u8]) {
        while let Some((&[class_and_number, ref counts @ ..], rest)) =
            payload.split_first_chunk::<17>()
        {
            let Some(counts) = counts.first_chunk::<16>() else {
                return;
            };
            let total: usize = counts.iter().map(|count| usize::from(*count)).sum();
            let Some((symbols, rest)) = rest.split_at_checked(total) else {
                return;
            };
            let tables = if class_and_number >> 4 == 0 { &mut self.dc } else { &mut self.ac };
            if let Some(table) = tables.get_mut(usize::from(class_and_number & 15)) {
                *table = HuffmanTable::new(counts, symbols);
            }
            payload = rest;
        }
    }
}

/// Checks the scans of a frame.
struct DataChecker {
    frame: Frame,
    components: Vec<ComponentState>,
}

/// What the scans so far contain of a component.
struct ComponentState {
    /// Number of bits of each coefficient that no scan has coded; `None` before its first scan.
    missing_bits: [Option<u8>; 64],
    /// Coefficients of each block that are not zero, one bit each. Only for progressive images.
    nonzero: Vec<u64>,
    /// Blocks per row of `nonzero`.
    stride: usize,
}

/// A component of a scan.
struct ScanPart<'a> {
    state: &'a mut ComponentState,
    coding: BlockCoding<'a>,
    /// Columns and rows of blocks in a unit of the scan.
    blocks: [usize; 2],
}

impl DataChecker {
    fn new(frame: Frame) -> Self {
        let [width, height] = frame.units;
        let state = |component: &FrameComponent| {
            let stride = width * component.sampling[0];
            let blocks = stride * height * component.sampling[1];
            let nonzero = if frame.is_progressive { vec![0; blocks] } else { Vec::new() };
            ComponentState { missing_bits: [None; 64], nonzero, stride }
        };
        let components = frame.components.iter().map(state).collect();
        Self { frame, components }
    }

    /// Checks the data of a scan. `EndOfData`: the data ends before the last unit.
    fn check_scan(
        &mut self,
        scan: &Scan,
        tables: &HuffmanTables,
        mut intervals: RestartIntervals<'_>,
    ) -> Result<(), CodeError> {
        let [width, height] = match scan.components.as_slice() {
            [only] => self.frame.components.get(only.index).map_or([0; 2], |c| c.blocks),
            _ => self.frame.units,
        };
        let mut parts = self.scan_parts(scan, tables);
        let units = width * height;
        let interval = intervals.units().unwrap_or(units);
        let mut done = 0;
        while done < units {
            let data = intervals.next().ok_or(CodeError::EndOfData)?;
            let bits = BitReader::new(data);
            let mut position = ScanPosition { bits, end_of_band_run: 0 };
            let end = (done + interval).min(units);
            for unit in done..end {
                let read = read_unit(&mut parts, [unit % width, unit / width], &mut position);
                match read {
                    // Some encoders omit the last bits of the image.
                    Err(CodeError::EndOfData) if unit + 1 == units || !intervals.is_at_end() => {
                        break;
                    }
                    read => read?,
                }
            }
            done = end;
        }
        Ok(())
    }

    /// Returns the components of a scan and marks their coefficients as coded.
    fn scan_parts<'a>(&'a mut self, scan: &Scan, tables: &'a HuffmanTables) -> Vec<ScanPart<'a>> {
        let is_interleaved = scan.components.len() > 1;
        let mut parts = Vec::new();
        let components = self.components.iter_mut().zip(&self.frame.components).enumerate();
        for (index, (state, component)) in components {
            // A scan has its components in the order of the frame (B.2.3).
            let Some(selected) = scan.components.iter().find(|c| c.index == index) else {
                continue;
            };
            let band = scan.band.map(usize::from);
            for bits in state.missing_bits.iter_mut().take(band[1] + 1).skip(band[0]) {
                *bits = Some(scan.missing_bits);
            }
            let coding = BlockCoding {
                dc_table: tables.dc.get(selected.dc_table).and_then(Option::as_ref),
                ac_table: tables.ac.get(selected.ac_table).and_then(Option::as_ref),
                band: scan.band,
                is_progressive: self.frame.is_progressive,
                is_refinement: scan.is_refinement,
            };
            let blocks = if is_interleaved { component.sampling } else { [1, 1] };
            parts.push(ScanPart { state, coding, blocks });
        }
        parts
    }

    /// Returns true if the scans do not contain all bits of all coefficients.
    fn has_missing_coefficients(&self) -> bool {
        let mut bits = self.components.iter().flat_map(|component| component.missing_bits);
        bits.any(|bits| bits != Some(0))
    }
}

/// Reads the blocks of a unit at a column and row.
fn read_unit(
    parts: &mut [ScanPart<'_>],
    [column, row]: [usize; 2],
    position: &mut ScanPosition<'_>,
) -> Result<(), CodeError> {
    for ScanPart { state, coding, blocks: [columns, rows] } in parts {
        for y in row * *rows..(row + 1) * *rows {
            for x in column * *columns..(column + 1) * *columns {
                let mut unused = 0;
                let block = state.nonzero.get_mut(y * state.stride + x);
                coding.read(position, block.unwrap_or(&mut unused))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{DecodeError, FileFormat, ImageLimits, decode};
    use std::path::Path;

    fn golden(name: &str) -> Vec<u8> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/golden/vision/images");
        std::fs::read(folder.join(name)).unwrap()
    }

    /// Cuts a file at every byte of its image data and closes it with an end marker.
    #[test]
    fn closed_file_with_missing_data_is_detected() {
        for name in ["plain.jpg", "half.jpg", "grey.jpg", "cmyk.jpg", "progressive.jpg"] {
            let file = golden(name);
            assert!(!is_data_missing(&file), "{name}");
            let start = file.windows(2).position(|pair| pair == [0xff, START_OF_SCAN]).unwrap();
            // The last unit may be incomplete.
            for cut in start + 20..file.len() - 24 {
                let cut_file = [&file[..cut], &[0xff, END_OF_IMAGE]].concat();
                let result = decode(&cut_file, &ImageLimits::default());
                assert!(result.is_err(), "{name} cut at {cut} of {}", file.len());
                // A header that is cut is reported by the decoder.
                let truncated = Err(DecodeError::Truncated { format: FileFormat::Jpeg });
                assert!(result == truncated || name == "progressive.jpg", "{name} {cut}");
            }
        }
    }

    #[test]
    fn restart_intervals_are_counted() {
        let file = golden("grey.jpg");
        let start = file.windows(2).position(|pair| pair == [0xff, START_OF_SCAN]).unwrap();
        let interval = [&file[..start], &[0xff, 0xdd, 0, 4, 0, 1], &file[start..]].concat();
        // Every unit would need its own interval, but there is one.
        assert!(is_data_missing(&interval));
    }

    #[test]
    fn damaged_headers_are_left_to_the_decoder() {
        let file = golden("progressive.jpg");
        let mut state = 5_u64;
        let mut next = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % n
        };
        for _ in 0..3000 {
            let mut file = file.clone();
            for _ in 0..=next(5) {
                let position = next(file.len());
                file[position] = next(256) as u8;
            }
            is_data_missing(&file);
        }
    }
}
