//! Detects the format of an image file from its content. File names are often wrong: many data sets hold PNG files
//! named `.jpg`.

use super::dicom::is_headerless_dicom;
use super::error::DecodeError;
use super::format::Format;

/// Formats that are recognised but not supported: offset of the signature, signature and name.
const UNSUPPORTED: [(usize, &[u8], &str); 16] = [
    (0, b"GIF8", "GIF"),
    (0, b"\0\0\0\x0cjP  ", "JPEG 2000"),
    (0, b"\xff\x4f\xff\x51", "JPEG 2000"),
    (0, b"\0\0\0\x0cJXL ", "JPEG XL"),
    (0, b"\xff\x0a", "JPEG XL"),
    (4, b"ftypavif", "AVIF"),
    (4, b"ftypheic", "HEIC"),
    (4, b"ftypmif1", "HEIC"),
    (0, b"%PDF", "PDF"),
    (344, b"n+1\0", "NIfTI"),
    (0, b"\x1f\x8b", "gzip"),
    (0, b"PK\x03\x04", "zip"),
    (0, b"<svg", "SVG"),
    (0, b"<!DOCTYPE", "HTML"),
    (0, b"<html", "HTML"),
    (0, b"version https://git-lfs", "Git LFS pointer"),
];

/// Detects the format of a file from its first bytes. For an unsupported format, the error names it if it is known
/// and else shows the first bytes.
pub fn detect_format(bytes: &[u8]) -> Result<Format, DecodeError> {
    if bytes.is_empty() {
        return Err(DecodeError::Empty);
    }
    let is = |offset: usize, signature: &[u8]| {
        bytes
            .get(offset..)
            .is_some_and(|rest| rest.starts_with(signature))
    };
    // DICOM first: its preamble may hold a TIFF header, so that TIFF readers can open the file.
    if is(128, b"DICM") {
        Ok(Format::Dicom)
    } else if is(0, b"\xff\xd8\xff") {
        Ok(Format::Jpeg)
    } else if is(0, b"\x89PNG\r\n\x1a\n") {
        Ok(Format::Png)
    } else if is(0, b"BM") {
        Ok(Format::Bmp)
    } else if is(0, b"II*\0") || is(0, b"MM\0*") {
        Ok(Format::Tiff)
    } else if is(0, b"RIFF") && is(8, b"WEBP") {
        Ok(Format::WebP)
    } else if let Some((.., name)) = UNSUPPORTED
        .iter()
        .find(|(offset, signature, _)| is(*offset, signature))
    {
        Err(DecodeError::Foreign { name })
    } else if is_headerless_dicom(bytes) {
        Ok(Format::Dicom)
    } else {
        let first = bytes.iter().take(4).map(|byte| format!("{byte:02x}"));
        Err(DecodeError::Unknown {
            first: first.collect::<Vec<_>>().join(" "),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_is_detected_from_content() {
        assert_eq!(detect_format(b"\x89PNG\r\n\x1a\n...").unwrap(), Format::Png);
        assert_eq!(
            detect_format(b"RIFF\x10\0\0\0WEBPVP8 ").unwrap(),
            Format::WebP
        );
        assert_eq!(detect_format(b"MM\0*").unwrap(), Format::Tiff);
        let mut dicom = vec![0; 128];
        dicom.extend_from_slice(b"DICM");
        assert_eq!(detect_format(&dicom).unwrap(), Format::Dicom);
        dicom[..4].copy_from_slice(b"II*\0");
        assert_eq!(detect_format(&dicom).unwrap(), Format::Dicom);
        let bare = detect_format(b"\x08\0\x05\0CS\x0a\0ISO_IR 100").unwrap();
        assert_eq!(bare, Format::Dicom);
        let unknown = detect_format(b"hello\0, world").unwrap_err().to_string();
        assert!(unknown.contains("bytes 68 65 6c 6c\n"), "{unknown}");
        assert!(matches!(detect_format(b""), Err(DecodeError::Empty)));
        assert!(detect_format(b"RIFF\x10\0\0\0WAVE").is_err());
    }
}
