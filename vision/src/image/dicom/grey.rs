//! Modality transform and grey-scale window of DICOM frames.

use dicom_object::{DefaultDicomObject, InMemDicomObject, Tag};
use dicom_pixeldata::DecodedPixelData;

use super::super::error::DecodeError;
use super::error::damaged;
use super::table::Table;
use super::view::{ShownWindow, View, Window, WindowSource};

const MODALITY_LUT: Tag = Tag(0x0028, 0x3000);
const VOI_LUT: Tag = Tag(0x0028, 0x3010);
const LUT: [Tag; 2] = [Tag(0x0028, 0x3002), Tag(0x0028, 0x3006)];
const WINDOW_CENTER: Tag = Tag(0x0028, 0x1050);
const WINDOW_WIDTH: Tag = Tag(0x0028, 0x1051);
const WINDOW_NAME: Tag = Tag(0x0028, 0x1055);
const VOI_FUNCTION: Tag = Tag(0x0028, 0x1056);

/// Modality transform: stored values to modality values.
#[derive(Clone, Debug)]
pub(super) enum Modality {
    /// `slope · value + intercept`.
    Linear { slope: f64, intercept: f64 },
    /// By a table.
    Table(Table),
}

/// Window: modality values to grey.
#[derive(Clone, Debug)]
pub(super) enum Grey {
    /// By the formula of C.11.2.1.2.1.
    Linear { center: f64, width: f64 },
    /// By that of C.11.2.1.3.2.
    Exact { center: f64, width: f64 },
    /// By that of C.11.2.1.3.1.
    Sigmoid { center: f64, width: f64 },
    /// By a table.
    Table(Table),
}

/// The first item of a sequence.
fn item(object: &DefaultDicomObject, tag: Tag) -> Option<&InMemDicomObject> {
    object.get(tag)?.items()?.first()
}

impl Modality {
    /// Reads the lookup table of an object, otherwise its slope and intercept.
    pub(super) fn read(
        object: &DefaultDicomObject,
        decoded: &DecodedPixelData,
    ) -> Result<Self, DecodeError> {
        if let Some(item) = item(object, MODALITY_LUT) {
            return Table::read(item, LUT).map(Self::Table);
        }
        let rescale = decoded.rescale().ok().and_then(|all| all.first());
        let (slope, intercept) = rescale.map_or((1.0, 0.0), |r| (r.slope, r.intercept));
        if slope.is_finite() && intercept.is_finite() {
            Ok(Self::Linear { slope, intercept })
        } else {
            Err(damaged("rescale slope and intercept must be numbers"))
        }
    }

    /// The modality's value of a stored one.
    pub(super) fn apply(&self, sample: i32) -> f64 {
        match self {
            Self::Linear { slope, intercept } => slope * f64::from(sample) + intercept,
            Self::Table(table) => table.apply(f64::from(sample)),
        }
    }

    /// Returns the smallest and the largest value of the samples.
    pub(super) fn range(&self, samples: &[i32]) -> (f64, f64) {
        let values = samples.iter().map(|sample| self.apply(*sample));
        values.fold(
            (f64::INFINITY, f64::NEG_INFINITY),
            |(least, most), value| (least.min(value), most.max(value)),
        )
    }
}

impl Grey {
    /// The grey of a value, 0 to 255.
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
            Self::Exact { center, width } => (value - center) / width + 0.5,
            Self::Sigmoid { center, width } => {
                1.0 / (1.0 + (-4.0 * (value - center) / width).exp())
            }
            Self::Table(table) => table.unit(value),
        };
        (unit.clamp(0.0, 1.0) * 255.0).round() as u8
    }
}

/// Returns the window that a view selects, with its description.
pub(super) fn window(
    object: &DefaultDicomObject,
    decoded: &DecodedPixelData,
    range: impl Fn() -> (f64, f64),
    view: &View,
) -> Result<(Grey, Option<ShownWindow>), DecodeError> {
    let function = object.get(VOI_FUNCTION).and_then(|e| e.to_str().ok());
    let function = function
        .as_deref()
        .unwrap_or("LINEAR")
        .trim_end_matches(['\0', ' '])
        .to_owned();
    let of = |(center, width): (f64, f64), source| {
        let grey = match function.as_str() {
            "SIGMOID" => Grey::Sigmoid { center, width },
            "LINEAR_EXACT" => Grey::Exact { center, width },
            _ => Grey::Linear { center, width },
        };
        let shown = ShownWindow {
            source,
            center: Some(center),
            width: Some(width),
        };
        (grey, Some(shown))
    };
    match &view.window {
        Window::Of { center, width } => {
            let (grey, shown) = of((*center, *width), WindowSource::Given);
            Ok((grey, shown))
        }
        Window::Auto => Ok(full_range(range())),
        Window::Named(name) => named(object, name).map(|found| of(found, WindowSource::File)),
        Window::File => {
            if let Some(item) = item(object, VOI_LUT) {
                let shown = ShownWindow {
                    source: WindowSource::Table,
                    center: None,
                    width: None,
                };
                return Ok((Grey::Table(Table::read(item, LUT)?), Some(shown)));
            }
            let own = windows(object).first().copied().or_else(|| {
                let first = decoded.window().ok()??.first()?;
                Some((first.center, first.width))
            });
            let own = own.filter(|(center, width)| center.is_finite() && *width >= 1.0);
            Ok(own.map_or_else(|| full_range(range()), |own| of(own, WindowSource::File)))
        }
    }
}

/// From the least value to the greatest.
fn full_range((least, most): (f64, f64)) -> (Grey, Option<ShownWindow>) {
    // A frame of one value is black, as the least value of any frame is.
    let width = if most > least { most - least } else { 1.0 };
    let center = least + width / 2.0;
    let shown = ShownWindow {
        source: WindowSource::Auto,
        center: Some(center),
        width: Some(width),
    };
    (Grey::Exact { center, width }, Some(shown))
}

/// The windows of an object.
fn windows(object: &DefaultDicomObject) -> Vec<(f64, f64)> {
    let numbers = |tag| {
        object
            .get(tag)
            .and_then(|e| e.to_multi_float64().ok())
            .unwrap_or_default()
    };
    numbers(WINDOW_CENTER)
        .into_iter()
        .zip(numbers(WINDOW_WIDTH))
        .collect()
}

/// Returns the window of an object by name.
fn named(object: &DefaultDicomObject, name: &str) -> Result<(f64, f64), DecodeError> {
    let windows = windows(object);
    let names = object
        .get(WINDOW_NAME)
        .and_then(|e| e.value().to_multi_str().ok());
    let names = names.as_deref().unwrap_or_default();
    let is_it = |known: &String| {
        known
            .trim_matches(['\0', ' '])
            .eq_ignore_ascii_case(name.trim())
    };
    let at = names.iter().position(is_it);
    let found = at.and_then(|i| windows.get(i).copied());
    found
        .filter(|(_, width)| *width >= 1.0)
        .ok_or_else(|| DecodeError::View {
            what: format!(
                "none of its {} windows has the name that --window gives",
                windows.len()
            ),
            hint: "--window holds for every image of a run: give CENTER,WIDTH, as in \
                   --window=-600,1500, or auto or file, or judge images without such a window in a \
                   run of their own",
        })
}
