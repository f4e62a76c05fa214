//! Detects the format of an image file from its content. File extensions are unreliable: many data
//! sets contain PNG files named `.jpg`.

use super::dicom::is_headerless_dicom;
use super::error::DecodeError;
use super::format::FileFormat;

/// Signatures of unsupported formats: offset, bytes and name of the format.
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

/// Detects the format of a file from its first bytes.
///
/// The error names the format if its signature is known, and otherwise shows the first bytes.
pub fn detect_format(bytes: &[u8]) -> Result<FileFormat, DecodeError> {
    if bytes.is_empty() {
        return Err(DecodeError::Empty);
    }
    let has_signature = |offset: usize, signature: &[u8]| {
        bytes.get(offset..).is_some_and(|rest| rest.starts_with(signature))
    };
    // Check DICOM first: its preamble may contain a TIFF header for TIFF readers.
    if has_signature(128, b"DICM") {
        Ok(FileFormat::Dicom)
    } else if has_signature(0, b"\xff\xd8\xff") {
        Ok(FileFormat::Jpeg)
    } else if has_signature(0, b"\x89PNG\r\n\x1a\n") {
        Ok(FileFormat::Png)
    } else if has_signature(0, b"BM") {
        Ok(FileFormat::Bmp)
    } else if has_signature(0, b"II*\0") || has_signature(0, b"MM\0*") {
        Ok(FileFormat::Tiff)
    } else if has_signature(0, b"RIFF") && has_signature(8, b"WEBP") {
        Ok(FileFormat::WebP)
    } else if let Some((.., name)) =
        UNSUPPORTED.iter().find(|(offset, signature, _)| has_signature(*offset, signature))
    {
        Err(DecodeError::UnsupportedFormat { name })
    } else if is_headerless_dicom(bytes) {
        Ok(FileFormat::Dicom)
    } else {
        let first_bytes = bytes.iter().take(4).map(|byte| format!("{byte:02x}"));
        Err(DecodeError::UnknownFormat { first_bytes: first_bytes.collect::<Vec<_>>().join(" ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_is_detected_from_content() {
        assert_eq!(detect_format(b"\x89PNG\r\n\x1a\n...").unwrap(), FileFormat::Png);
        assert_eq!(detect_format(b"RIFF\x10\0\0\0WEBPVP8 ").unwrap(), FileFormat::WebP);
        assert_eq!(detect_format(b"MM\0*").unwrap(), FileFormat::Tiff);
        let mut dicom = vec![0; 128];
        dicom.extend_from_slice(b"DICM");
        assert_eq!(detect_format(&dicom).unwrap(), FileFormat::Dicom);
        dicom[..4].copy_from_slice(b"II*\0");
        assert_eq!(detect_format(&dicom).unwrap(), FileFormat::Dicom);
        let headerless = detect_format(b"\x08\0\x05\0CS\x0a\0ISO_IR 100").unwrap();
        assert_eq!(headerless, FileFormat::Dicom);
        let unknown = detect_format(b"hello\0, world").unwrap_err().to_string();
        assert!(unknown.contains("bytes 68 65 6c 6c\n"), "{unknown}");
        assert!(matches!(detect_format(b""), Err(DecodeError::Empty)));
        assert!(detect_format(b"RIFF\x10\0\0\0WAVE").is_err());
    }
}
