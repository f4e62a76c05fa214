//! Forms of report files, so that a report replaces only an earlier report.

use std::io::{self, Read as _, SeekFrom};

use crate::support::files::file_form::{
    FileForm, ReadSeek, contains_bytes, contains_text, has_json_fields, read_head, starts_with,
};

/// Bytes at the end of a Parquet file that are searched for the names of the columns.
const FOOTER_BYTES: u64 = 64 << 10;

/// An HTML report.
pub const HTML_REPORT: FileForm = FileForm {
    name: "an HTML report of acem3",
    recognise: |file| {
        let head = read_head(file)?;
        let generator = b"<meta name=\"generator\" content=\"acem3\">";
        Ok(head.starts_with(b"<!DOCTYPE html>") && contains_bytes(&head, generator))
    },
};

/// A Markdown report. Its last section names the program.
pub const MARKDOWN_REPORT: FileForm = FileForm {
    name: "a Markdown report of acem3",
    recognise: |file| {
        Ok(starts_with(file, "# ")?
            && contains_text(file, "Written by acem3 ")?
            && contains_text(file, "acem3 is not a medical device.")?)
    },
};

/// A JSON report.
pub const JSON_REPORT: FileForm = FileForm {
    name: "a JSON report of acem3",
    recognise: |file| {
        Ok(has_json_fields(file, &["schema", "version", "target", "scores", "draws", "judges"])?
            || has_json_fields(file, &["schema", "version", "form", "draws", "judges"])?)
    },
};

/// The verdicts as CSV.
pub const CSV_REPORT: FileForm = FileForm {
    name: "a CSV report of acem3",
    recognise: |file| {
        Ok(starts_with(file, "judge,judge_name,case,line,model_a,model_b,")?
            || starts_with(file, "judge,judge_name,case,line,model,status,")?)
    },
};

/// The verdicts as Parquet. The names of the columns are in the footer.
pub const PARQUET_REPORT: FileForm = FileForm {
    name: "a Parquet report of acem3",
    recognise: |file| {
        let footer = read_tail(file)?;
        let has_columns =
            |names: &[&str]| names.iter().all(|name| contains_bytes(&footer, name.as_bytes()));
        Ok(starts_with(file, "PAR1")?
            && (has_columns(&["judge_name", "model_a", "answer_b"])
                || has_columns(&["judge_name", "probability", "token_recall"])))
    },
};

/// Reads the last bytes of a file.
fn read_tail(file: &mut dyn ReadSeek) -> io::Result<Vec<u8>> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(FOOTER_BYTES)))?;
    let mut tail = Vec::new();
    file.take(FOOTER_BYTES).read_to_end(&mut tail)?;
    Ok(tail)
}
