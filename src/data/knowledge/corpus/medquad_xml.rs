//! MedQuAD as released: an XML file per document, with a focus and pairs of question and answer.

use std::path::Path;

use anyhow::{Context as _, Result};
use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::corpus_row::{CorpusRow, CorpusRows, KnowledgeDocument, NumberedCorpusRow};
use super::document_row::source_id;
use crate::support::files::regular_file;

/// Largest file, in bytes. The largest of the release has 200 kB.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Reads the pairs of a document. A file that cannot be parsed is one malformed row.
///
/// # Errors
///
/// The file cannot be read.
pub(super) fn read(path: &Path) -> Result<CorpusRows> {
    let unreadable = || format!("{} cannot be read", path.display());
    let length = regular_file::open(path).and_then(|file| file.metadata());
    let length = length.with_context(unreadable)?.len();
    if length > MAX_FILE_BYTES {
        let message = format!("the file has {length} bytes, expected at most {MAX_FILE_BYTES}");
        return Ok(Box::new(std::iter::once((1, Err(message)))));
    }
    let bytes = regular_file::read(path).with_context(unreadable)?;
    let rows = parse(&bytes).unwrap_or_else(|(line, message)| vec![(line, Err(message))]);
    Ok(Box::new(rows.into_iter()))
}

/// Where text belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextPlace {
    Focus,
    Answer,
    Other,
}

/// The document as parsed so far.
#[derive(Debug, Default)]
struct Document {
    id: String,
    source: String,
    focus: String,
    /// Number of the current pair, from 1.
    pair: u64,
    /// Id of the current question.
    question_id: Option<String>,
    answer: String,
    rows: Vec<NumberedCorpusRow>,
    /// True if the element of the document has started.
    is_open: bool,
    /// True if it has ended.
    is_complete: bool,
}

/// Parses a document.
fn parse(bytes: &[u8]) -> Result<Vec<NumberedCorpusRow>, (u64, String)> {
    let text = str::from_utf8(bytes)
        .map_err(|error| (line_at(bytes, error.valid_up_to()), "not UTF-8".to_owned()))?;
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let mut document = Document::default();
    let mut place = TextPlace::Other;
    loop {
        let event = reader.read_event().map_err(|error| {
            let line = line_at(bytes, reader.error_position() as usize);
            (line, format!("malformed XML: {error}"))
        })?;
        match event {
            Event::Start(tag) => match tag.name().as_ref() {
                "Document" => {
                    document.is_open = true;
                    document.id = attribute(&tag, "id").unwrap_or_default();
                    document.source = attribute(&tag, "source").unwrap_or_default();
                }
                "Focus" => place = TextPlace::Focus,
                "QAPair" => {
                    document.pair += 1;
                    document.question_id = None;
                    document.answer.clear();
                }
                "Question" => document.question_id = attribute(&tag, "qid"),
                "Answer" => place = TextPlace::Answer,
                _ => {}
            },
            Event::End(tag) => match tag.name().as_ref() {
                "Focus" | "Answer" => place = TextPlace::Other,
                "QAPair" => document.end_pair(),
                "Document" => document.is_complete = true,
                _ => {}
            },
            Event::Text(text) => document.push(place, &text.xml10_content()),
            Event::CData(text) => document.push(place, &text.xml10_content()),
            Event::GeneralRef(reference) => {
                let resolved = resolve(&reference).ok_or_else(|| {
                    let line = line_at(bytes, reader.buffer_position() as usize);
                    (line, format!("unknown entity `&{};`", reference.xml10_content()))
                })?;
                document.push(place, &resolved);
            }
            Event::Eof => break,
            _ => {}
        }
    }
    document.into_rows().map_err(|message| (line_at(bytes, bytes.len()), message))
}

impl Document {
    fn push(&mut self, place: TextPlace, text: &str) {
        match place {
            TextPlace::Focus => self.focus.push_str(text),
            TextPlace::Answer => self.answer.push_str(text),
            TextPlace::Other => {}
        }
    }

    /// Returns the rows of a document that was read to its end.
    fn into_rows(mut self) -> Result<Vec<NumberedCorpusRow>, String> {
        if !self.is_open {
            let message = "no element `Document`: expected a document of MedQuAD with `QAPair`, \
                           `Question` and `Answer`";
            return Err(message.to_owned());
        }
        if !self.is_complete {
            return Err("malformed XML: the file ends before `</Document>`".to_owned());
        }
        if self.rows.is_empty() {
            self.rows.push((1, Ok(CorpusRow::WithoutText)));
        }
        Ok(self.rows)
    }

    /// Adds the current pair to the rows.
    fn end_pair(&mut self) {
        let text = self.answer.trim();
        let row = if text.is_empty() {
            CorpusRow::WithoutText
        } else {
            let id = self.question_id.take();
            let id = id.unwrap_or_else(|| format!("{}-{}", self.id, self.pair));
            CorpusRow::Document(KnowledgeDocument {
                id: source_id(Some(&self.source), &id),
                title: self.focus.trim().to_owned(),
                text: text.to_owned(),
            })
        };
        self.rows.push((self.pair, Ok(row)));
    }
}

/// Returns an attribute of a tag.
fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = tag.attributes().filter_map(Result::ok);
    let attribute = attributes.find(|attribute| attribute.key.as_ref() == name)?;
    let value = attribute.value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

/// Returns the text of a character reference or a predefined entity. Documents define no others:
/// nested definitions would make a small file take gigabytes.
fn resolve(reference: &BytesRef<'_>) -> Option<String> {
    if reference.is_char_ref() {
        return reference.resolve_char_ref().ok().flatten().map(String::from);
    }
    let name = reference.xml10_content();
    quick_xml::escape::resolve_predefined_entity(&name).map(str::to_owned)
}

/// Returns the number of the line at a byte, from 1.
fn line_at(bytes: &[u8], position: usize) -> u64 {
    let before = bytes.get(..position.min(bytes.len())).unwrap_or_default();
    before.split(|byte| *byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <Document id=\"0000007\" source=\"GHR\" url=\"https://x/?a=1&amp;b=2\">\n\
         <Focus>Crohn&apos;s disease</Focus>\n\
         <FocusAnnotations><Category>Disease</Category></FocusAnnotations>\n\
         <QAPairs>\n\
         <QAPair pid=\"1\"><Question qid=\"0000007-1\" qtype=\"information\">What is it?</Question>\n\
         <Answer> An inflammation &lt;of the gut&gt;&#46; </Answer></QAPair>\n\
         <QAPair pid=\"2\"><Question qid=\"0000007-2\">And?</Question><Answer/></QAPair>\n\
         <QAPair pid=\"3\"><Question>Third?</Question><Answer><![CDATA[a & b]]></Answer></QAPair>\n\
         </QAPairs></Document>";

    #[test]
    fn pairs_are_documents_without_their_questions() {
        let rows = parse(DOCUMENT.as_bytes()).unwrap();
        let document = |id: &str, text: &str| {
            let [id, text] = [id, text].map(str::to_owned);
            CorpusRow::Document(KnowledgeDocument { id, title: "Crohn's disease".to_owned(), text })
        };
        let expected = vec![
            (1, Ok(document("GHR/0000007-1", "An inflammation <of the gut>."))),
            (2, Ok(CorpusRow::WithoutText)),
            (3, Ok(document("GHR/0000007-3", "a & b"))),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn malformed_documents_are_errors_with_their_line() {
        let error = |text: &[u8]| parse(text).unwrap_err();
        let (line, message) = error(b"<Document>\n<QAPairs>\n</Document>");
        assert!(line >= 2 && message.contains("malformed XML"), "{line} {message}");
        assert!(error(b"<html>\n</html>").1.contains("no element `Document`"));
        assert!(error(b"<Document>\n<Focus>").1.contains("ends before"));
        let bomb = b"<!DOCTYPE a [<!ENTITY x \"yy\">]>\n<Document><Focus>&x;</Focus></Document>";
        assert_eq!(error(bomb), (2, "unknown entity `&x;`".to_owned()));
        assert_eq!(error(b"<Document>\n\xff</Document>"), (2, "not UTF-8".to_owned()));
    }
}
