//! The image of a case, with the fields that change the window of a DICOM image.

use maud::{Markup, html};

use super::field_names::{CENTER, WIDTH, WINDOW};

/// Usual windows of CT images in Hounsfield units: name, center and width.
const CT_WINDOWS: [(&str, [f64; 2]); 5] = [
    ("Brain", [40.0, 80.0]),
    ("Lung", [-600.0, 1500.0]),
    ("Mediastinum", [50.0, 350.0]),
    ("Abdomen", [50.0, 400.0]),
    ("Bone", [400.0, 1800.0]),
];
/// Value of the field [`WINDOW`] for the window of the file.
pub(crate) const FILE_WINDOW: &str = "file";

/// The window that the file of a DICOM image states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FileWindow {
    /// Center and width; `None` if the file has a table instead.
    pub(crate) values: Option<[f64; 2]>,
    /// True if the values are Hounsfield units.
    pub(crate) is_ct: bool,
}

/// The image of a case.
pub(crate) struct ImageView {
    /// Address of the image.
    pub(crate) image: String,
    /// Address of the page.
    pub(crate) page: String,
    /// Window of the file, if the image has a window.
    pub(crate) file: Option<FileWindow>,
    /// Center and width that somebody chose.
    pub(crate) chosen: Option<[f64; 2]>,
    /// Id of the page's form, if it can still be filled in. The fields of the window belong to this form, so
    /// choosing another window also saves the entries.
    pub(crate) form: Option<&'static str>,
}

impl ImageView {
    /// Returns the image as HTML.
    pub(crate) fn render(&self) -> Markup {
        let source = match self.chosen {
            Some([center, width]) => format!("{}?{CENTER}={center}&{WIDTH}={width}", self.image),
            None => self.image.clone(),
        };
        html! {
            figure.image {
                div.viewer { img src=(source) alt="Case image"; }
                figcaption {
                    a href=(source) target="_blank" rel="noopener" { "Open in full size" }
                    @if let Some(file) = self.file {
                        @if self.form.is_some() {
                            div.window role="group" aria-label="Window" { (self.fields(file)) }
                        } @else {
                            form.window method="get" action=(self.page) { (self.fields(file)) }
                        }
                    }
                }
            }
        }
    }

    fn fields(&self, file: FileWindow) -> Markup {
        let shown = self.chosen.or(file.values);
        let [center, width] = shown.map_or([None, None], |window| window.map(Some));
        let of_file = file.values.map_or_else(|| FILE_WINDOW.to_owned(), window_value);
        let presets = if file.is_ct { &CT_WINDOWS[..] } else { &[] };
        html! {
            label { "Center" input type="number" step="any" name=(CENTER) value=[center] form=[self.form]; }
            label { "Width" input type="number" step="any" min="1" name=(WIDTH) value=[width] form=[self.form]; }
            button type="submit" form=[self.form] { "Apply window" }
            button type="submit" name=(WINDOW) value=(of_file) form=[self.form] { "Window of the file" }
            @for (name, values) in presets {
                button type="submit" name=(WINDOW) value=(window_value(*values)) form=[self.form] { (name) }
            }
        }
    }
}

fn window_value([center, width]: [f64; 2]) -> String {
    format!("{center},{width}")
}

/// Reads center and width from the fields of a window. `field` returns the value of a field.
pub(crate) fn chosen_window<'a>(field: impl Fn(&str) -> Option<&'a str>) -> Option<[f64; 2]> {
    let numbers = match field(WINDOW) {
        Some(preset) => preset.split_once(','),
        None => field(CENTER).zip(field(WIDTH)),
    };
    let (center, width) = numbers?;
    let window = [center.parse().ok()?, width.parse().ok()?];
    window.iter().all(|value: &f64| value.is_finite()).then_some(window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_come_before_numbers() {
        let chosen = |fields: &[(&str, &'static str)]| {
            chosen_window(|name| fields.iter().find(|(n, _)| *n == name).map(|(_, value)| *value))
        };
        let numbers = [(CENTER, "40"), (WIDTH, "80.5")];
        assert_eq!(chosen(&numbers), Some([40.0, 80.5]));
        assert_eq!(
            chosen(&[numbers[0], numbers[1], (WINDOW, "-600,1500")]),
            Some([-600.0, 1500.0])
        );
        assert_eq!(chosen(&[numbers[0], numbers[1], (WINDOW, FILE_WINDOW)]), None);
        for damaged in [&[(CENTER, "40")][..], &[(CENTER, "inf"), (WIDTH, "1")], &[(WINDOW, "a,b")]]
        {
            assert_eq!(chosen(damaged), None);
        }
    }
}
