//! Images and DICOM objects.

use acem3_vision::{DicomView, DicomWindow, ImageLimits, decode_with_view};

/// Fewer pixels than the program accepts: the time and memory of large images are limited by a
/// process of their own.
const LIMITS: ImageLimits = ImageLimits { bytes: 1 << 20, pixels: 1 << 20 };

/// Decodes a PNG, JPEG, WebP, BMP or TIFF file.
pub fn read_image(bytes: &[u8]) -> bool {
    decode_with_view(bytes, &LIMITS, &DicomView::default()).is_ok()
}

/// Decodes the middle frame of a DICOM object with the window of the file, and the first frame
/// with another window.
pub fn read_dicom(bytes: &[u8]) -> bool {
    let first = DicomView {
        window: DicomWindow::CenterWidth { center: 40.0, width: 400.0 },
        frame: Some(1),
    };
    let named = DicomView { window: DicomWindow::Named("BONE".to_owned()), frame: None };
    let views = [DicomView::default(), first, named];
    let decoded = views.map(|view| decode_with_view(bytes, &LIMITS, &view).is_ok());
    decoded.contains(&true)
}
