//! Images in fields of imported files: paths, data URLs, base64 text, and lists with one of them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acem3_vision::{DecodeError, ImageLimits, detect_format};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::data::cases::case::ImageSource;

/// Texts of at least this length without the name of a file are base64. VLMEvalKit has the same
/// limit.
const MIN_BASE64_CHARS: usize = 65;
/// Number of characters of base64 text that are decoded to detect the format. The signature of
/// DICOM ends at byte 132.
const HEAD_CHARS: usize = 176;
/// Number of characters of a text in messages.
const SHOWN_CHARS: usize = 80;
/// Base64 with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Where images of a file are.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImageFolders {
    /// The folder that the user named.
    pub(crate) named: Option<PathBuf>,
    /// The folder of the file.
    pub(crate) own: PathBuf,
    /// True if images are not looked up.
    pub(crate) is_skipped: bool,
}

impl ImageFolders {
    /// Returns the source of the image at a path.
    pub(crate) fn resolve(&self, path: &str) -> ImageSource {
        let folder = self.named.as_ref().unwrap_or(&self.own);
        ImageSource::File(folder.join(path.trim_start_matches("file://")))
    }
}

/// What tells the images of two files apart, without decoding them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ImportedImageKey {
    /// The path of a file.
    File(PathBuf),
    /// The digest of bytes, or of a field with other content than a path.
    Digest([u8; 32]),
}

impl ImportedImageKey {
    /// Returns the key of bytes.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        Self::Digest(Sha256::digest(bytes).into())
    }

    /// Returns the key of the image in a field; `None` if the field is empty or has no usable image.
    pub(crate) fn of_value(value: &Value, folders: &ImageFolders) -> Option<Self> {
        let folders = ImageFolders { is_skipped: false, ..folders.clone() };
        Some(match image_of(value, "", &folders).ok()?? {
            ImageSource::File(path) => Self::File(path),
            ImageSource::Bytes { bytes, .. } => Self::of_bytes(&bytes),
        })
    }

    /// Returns true if the images differ. Files are read only if their paths differ.
    pub(crate) fn differs(&self, other: &Self) -> bool {
        if self == other {
            return false;
        }
        match (self.digest(), other.digest()) {
            (Some(one), Some(two)) => one != two,
            // A missing file is a problem of its own.
            _ => {
                matches!((self, other), (Self::File(a), Self::File(b)) if a.file_name() != b.file_name())
            }
        }
    }

    fn digest(&self) -> Option<[u8; 32]> {
        match self {
            Self::Digest(digest) => Some(*digest),
            Self::File(path) => {
                let is_small = path.metadata().ok()?.len() <= ImageLimits::default().bytes as u64;
                let bytes = is_small.then(|| std::fs::read(path).ok()).flatten()?;
                Some(Sha256::digest(bytes).into())
            }
        }
    }
}

impl fmt::Display for ImportedImageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Digest([a, b, c, d, ..]) => {
                write!(f, "bytes with SHA-256 {a:02x}{b:02x}{c:02x}{d:02x}…")
            }
        }
    }
}

/// Returns the image in a field; `None` if the field is empty. `name` names embedded images.
///
/// # Errors
/// The field has several images, an address on the internet, or base64 text of no image.
pub(crate) fn image_of(
    value: &Value,
    name: &str,
    folders: &ImageFolders,
) -> Result<Option<ImageSource>, String> {
    match value {
        _ if folders.is_skipped => Ok(None),
        Value::String(text) => image_of_text(text.trim(), name, folders),
        Value::Array(values) => match values.as_slice() {
            [] => Ok(None),
            [one] => image_of(one, name, folders),
            many => Err(several_images(many.len())),
        },
        Value::Object(fields) => {
            let keys = ["bytes", "url", "image_url", "path", "data", "image", "src", "file_name"];
            if !fields.is_empty() && !keys.iter().any(|key| fields.contains_key(*key)) {
                let names: Vec<&str> = fields.keys().take(8).map(String::as_str).collect();
                return Err(format!(
                    "the image is an object with the fields {}, expected `bytes`, `path` or `url`",
                    names.join(", ")
                ));
            }
            let found = keys.iter().filter_map(|key| fields.get(*key));
            let found = found.filter(|value| !value.is_null()).map(|v| image_of(v, name, folders));
            found.into_iter().next().unwrap_or(Ok(None))
        }
        Value::Null | Value::Bool(false) => Ok(None),
        Value::Bool(true) | Value::Number(_) => {
            Err(format!("the image is {value}, expected a path, a data URL or base64 text"))
        }
    }
}

fn several_images(n: usize) -> String {
    format!("the row has {n} images, expected one\nhint: the judge sees one image per case")
}

fn image_of_text(
    text: &str,
    name: &str,
    folders: &ImageFolders,
) -> Result<Option<ImageSource>, String> {
    if text.is_empty() || text.eq_ignore_ascii_case("nan") || text == "[]" {
        return Ok(None);
    }
    if let Some(rest) = text.strip_prefix("data:") {
        let (head, data) = rest.split_once(',').ok_or("the data URL of the image has no data")?;
        if !head.ends_with(";base64") {
            return Err("the data URL of the image is not base64".into());
        }
        return decode(data, name).map(Some);
    }
    if text.starts_with("<PIL.") {
        return Err("the image was not written, only its description".into());
    }
    if text.starts_with("http://") || text.starts_with("https://") {
        let shown: String = text.chars().take(SHOWN_CHARS).collect();
        return Err(format!(
            "the image is an address ({shown}), expected a file\n\
             hint: download the images and name their files"
        ));
    }
    if let Some(list) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        // A list as Python prints it.
        let items: Vec<&str> =
            list.split(',').map(|item| item.trim().trim_matches(['\'', '"'])).collect();
        return match items.as_slice() {
            [one] => image_of_text(one, name, folders),
            many => Err(several_images(many.len())),
        };
    }
    if is_base64_image(text) {
        return decode(text, name).map(Some);
    }
    Ok(Some(folders.resolve(text)))
}

/// Returns true for base64 text of an image, as opposed to a path: it is long, has only characters
/// of base64 and starts like an encoded image.
pub(crate) fn is_base64_image(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"+/=\r\n".contains(&b);
    if text.len() < MIN_BASE64_CHARS || !text.bytes().all(is_plain) {
        return false;
    }
    let head: String = text.chars().filter(|c| !c.is_ascii_whitespace()).take(HEAD_CHARS).collect();
    // Whole groups of four characters decode on their own.
    let head = head.get(..head.len() / 4 * 4).unwrap_or_default();
    BASE64.decode(head).is_ok_and(|head| detect_format(&head).is_ok())
}

fn decode(text: &str, name: &str) -> Result<ImageSource, String> {
    let limit = ImageLimits::default().bytes;
    let size = text.len() / 4 * 3;
    if size > limit {
        return Err(DecodeError::TooManyBytes { size, limit }.to_string());
    }
    let has_breaks = text.bytes().any(|b| b.is_ascii_whitespace());
    let plain: String =
        if has_breaks { text.split_ascii_whitespace().collect() } else { text.to_owned() };
    let bytes = BASE64.decode(plain).map_err(|e| format!("the base64 of the image: {e}"))?;
    Ok(embedded(name, bytes.into()))
}

/// Returns an embedded image with a name that ends in the extension of its format.
pub(crate) fn embedded(name: &str, bytes: Arc<[u8]>) -> ImageSource {
    ImageSource::Bytes { name: name.to_owned(), bytes }
}

/// Returns the image at the first path that exists.
pub(crate) fn first_existing(paths: impl IntoIterator<Item = PathBuf>) -> Option<ImageSource> {
    paths.into_iter().find(|path| Path::is_file(path)).map(ImageSource::File)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A PNG of one pixel.
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==";

    fn image(value: &Value) -> Result<Option<ImageSource>, String> {
        let folders = ImageFolders { own: "set".into(), ..ImageFolders::default() };
        image_of(value, "c1", &folders)
    }

    #[test]
    fn paths_and_embedded_images_are_read() {
        let path = Some(ImageSource::File("set/a.png".into()));
        for value in [
            json!("a.png"),
            json!(["a.png"]),
            json!("['a.png']"),
            json!({"path": "a.png", "bytes": null}),
        ] {
            assert_eq!(image(&value).unwrap(), path, "{value}");
        }
        for value in
            [json!(PNG), json!({"image_url": {"url": format!("data:image/png;base64,{PNG}")}})]
        {
            let found = image(&value).unwrap();
            assert!(
                matches!(found, Some(ImageSource::Bytes { ref name, .. }) if name == "c1"),
                "{value}"
            );
        }
        for value in [json!(null), json!(""), json!([]), json!({})] {
            assert_eq!(image(&value).unwrap(), None);
        }
    }

    #[test]
    fn unusable_images_are_errors() {
        let two = json!(["a.png", "b.png"]);
        for value in [
            two,
            json!("https://x.org/a.png"),
            json!("data:image/png,abc"),
            json!(7),
            json!({"w": 3}),
        ] {
            assert!(image(&value).is_err(), "{value}");
        }
        assert!(image(&json!("data:image/png;base64,%%")).unwrap_err().contains("base64"));
        // A long path is no base64.
        let path = "a/".repeat(40) + "b";
        assert!(matches!(image(&json!(path)).unwrap(), Some(ImageSource::File(_))));
    }
}
