//! Modality transform and grey-scale window of DICOM frames (PS3.3 C.11.1 and C.11.2).

use dicom_object::{DefaultDicomObject, InMemDicomObject, Tag};
use dicom_pixeldata::DecodedPixelData;

use super::super::error::DecodeError;
use super::error::damaged;
use super::lookup_table::LookupTable;
use super::view::{AppliedWindow, DicomView, DicomWindow, WindowSource};

const MODALITY_LUT: Tag = Tag(0x0028, 0x3000);
const VOI_LUT: Tag = Tag(0x0028, 0x3010);
/// Tags of the descriptor and the data of a lookup table.
const LUT: [Tag; 2] = [Tag(0x0028, 0x3002), Tag(0x0028, 0x3006)];
const WINDOW_CENTER: Tag = Tag(0x0028, 0x1050);
const WINDOW_WIDTH: Tag = Tag(0x0028, 0x1051);
const WINDOW_NAME: Tag = Tag(0x0028, 0x1055);
const VOI_FUNCTION: Tag = Tag(0x0028, 0x1056);

/// Modality transform: stored values to modality values.
#[derive(Clone, Debug)]
pub(super) enum ModalityTransform {
    /// `slope · value + intercept`.
    Linear { slope: f64, intercept: f64 },
    /// Lookup table.
    Table(LookupTable),
}

/// Window: modality values to grey.
#[derive(Clone, Debug)]
pub(super) enum GreyTransform {
    /// VOI LUT function `LINEAR` (C.11.2.1.2.1).
    Linear { center: f64, width: f64 },
    /// VOI LUT function `LINEAR_EXACT` (C.11.2.1.3.2).
    LinearExact { center: f64, width: f64 },
    /// VOI LUT function `SIGMOID` (C.11.2.1.3.1).
    Sigmoid { center: f64, width: f64 },
    /// Lookup table.
    Table(LookupTable),
}

/// Returns the first item of a sequence.
fn first_item(object: &DefaultDicomObject, tag: Tag) -> Option<&InMemDicomObject> {
    object.get(tag)?.items()?.first()
}

impl ModalityTransform {
    /// Reads the lookup table of an object, or its slope and intercept if it has no table.
    pub(super) fn read(
        object: &DefaultDicomObject,
        decoded: &DecodedPixelData,
    ) -> Result<Self, DecodeError> {
        if let Some(item) = first_item(object, MODALITY_LUT) {
            return LookupTable::read(item, LUT).map(Self::Table);
        }
        let rescale = decoded.rescale().ok().and_then(|all| all.first());
        let (slope, intercept) = rescale.map_or((1.0, 0.0), |r| (r.slope, r.intercept));
        if slope.is_finite() && intercept.is_finite() {
            Ok(Self::Linear { slope, intercept })
        } else {
            Err(damaged("rescale slope and intercept must be numbers"))
        }
    }

    /// Converts a stored value to a modality value.
    pub(super) fn apply(&self, sample: i32) -> f64 {
        match self {
            Self::Linear { slope, intercept } => slope * f64::from(sample) + intercept,
            Self::Table(table) => table.look_up(f64::from(sample)),
        }
    }

    /// Returns the smallest and the largest modality value of the samples.
    pub(super) fn value_range(&self, samples: &[i32]) -> (f64, f64) {
        let values = samples.iter().map(|sample| self.apply(*sample));
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), value| {
            (min.min(value), max.max(value))
        })
    }
}

impl GreyTransform {
    /// Converts a modality value to grey, 0 to 255.
    pub(super) fn apply(&self, value: f64) -> u8 {
        let unit = match self {
            Self::Linear { center, width } => {
                let (center, width) = (center - 0.5, width - 1.0);
                if value <= center - width / 2.0 {
                    0.0
                } else if value > center + width / 2.0 {
                    1.0
                } else {
                    (value - center) / width + 0.5
                }
            }
            Self::LinearExact { center, width } => (value - center) / width + 0.5,
            Self::Sigmoid { center, width } => {
                1.0 / (1.0 + (-4.0 * (value - center) / width).exp())
            }
            Self::Table(table) => table.look_up_unit(value),
        };
        (unit.clamp(0.0, 1.0) * 255.0).round() as u8
    }
}

/// Returns the window that a view selects, with its description for records.
///
/// `value_range` computes the smallest and largest modality value of the frame.
pub(super) fn select_window(
    object: &DefaultDicomObject,
    decoded: &DecodedPixelData,
    value_range: impl Fn() -> (f64, f64),
    view: &DicomView,
) -> Result<(GreyTransform, Option<AppliedWindow>), DecodeError> {
    let function = object.get(VOI_FUNCTION).and_then(|e| e.to_str().ok());
    let function = function.as_deref().unwrap_or("LINEAR").trim_end_matches(['\0', ' ']).to_owned();
    let with_function = |(center, width): (f64, f64), source| {
        let transform = match function.as_str() {
            "SIGMOID" => GreyTransform::Sigmoid { center, width },
            "LINEAR_EXACT" => GreyTransform::LinearExact { center, width },
            _ => GreyTransform::Linear { center, width },
        };
        let applied = AppliedWindow { source, center: Some(center), width: Some(width) };
        (transform, Some(applied))
    };
    match &view.window {
        DicomWindow::CenterWidth { center, width } => {
            Ok(with_function((*center, *width), WindowSource::Given))
        }
        DicomWindow::Auto => Ok(full_range_window(value_range())),
        DicomWindow::Named(name) => {
            let window = window_by_name(object, name)?;
            Ok(with_function(window, WindowSource::File))
        }
        DicomWindow::File => {
            if let Some(item) = first_item(object, VOI_LUT) {
                let applied =
                    AppliedWindow { source: WindowSource::Table, center: None, width: None };
                let table = LookupTable::read(item, LUT)?;
                return Ok((GreyTransform::Table(table), Some(applied)));
            }
            let window = stored_windows(object).first().copied().or_else(|| {
                let first = decoded.window().ok()??.first()?;
                Some((first.center, first.width))
            });
            let window = window.filter(|(center, width)| center.is_finite() && *width >= 1.0);
            Ok(window.map_or_else(
                || full_range_window(value_range()),
                |window| with_function(window, WindowSource::File),
            ))
        }
    }
}

/// Returns the window from the smallest to the largest value of a frame.
fn full_range_window((min, max): (f64, f64)) -> (GreyTransform, Option<AppliedWindow>) {
    // The smallest value is black, so a frame with a single value is black.
    let width = if max > min { max - min } else { 1.0 };
    let center = min + width / 2.0;
    let applied =
        AppliedWindow { source: WindowSource::Auto, center: Some(center), width: Some(width) };
    (GreyTransform::LinearExact { center, width }, Some(applied))
}

/// Returns the center and width of each window of an object.
fn stored_windows(object: &DefaultDicomObject) -> Vec<(f64, f64)> {
    let numbers = |tag| object.get(tag).and_then(|e| e.to_multi_float64().ok()).unwrap_or_default();
    numbers(WINDOW_CENTER).into_iter().zip(numbers(WINDOW_WIDTH)).collect()
}

/// Returns the center and width of the window with this name. Upper and lower case are equal.
fn window_by_name(object: &DefaultDicomObject, name: &str) -> Result<(f64, f64), DecodeError> {
    let windows = stored_windows(object);
    let names = object.get(WINDOW_NAME).and_then(|e| e.value().to_multi_str().ok());
    let names = names.as_deref().unwrap_or_default();
    let matches_name =
        |stored: &String| stored.trim_matches(['\0', ' ']).eq_ignore_ascii_case(name.trim());
    let index = names.iter().position(matches_name);
    let window = index.and_then(|i| windows.get(i).copied());
    window.filter(|(_, width)| *width >= 1.0).ok_or_else(|| DecodeError::InvalidView {
        problem: format!(
            "none of the {} windows in the file has the name given by --window and a width of at \
             least 1",
            windows.len()
        ),
        hint: "--window applies to every image of the run; pass CENTER,WIDTH, for example \
                   --window=-600,1500, or auto or file, or judge images without this window in a \
                   separate run",
    })
}
