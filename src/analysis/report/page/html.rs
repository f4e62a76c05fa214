//! HTML output of the report: one self-contained page.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use acem3_experts::prompt::Form;
use acem3_experts::{Aspect, Criterion};
use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::browser::{BrowserEntry, CaseBrowser};
use crate::analysis::report::page::embedded_images::EmbeddedImages;
use crate::analysis::report::section::{ReportSection, SectionBlock};
use crate::analysis::report::verdicts::record_summary::RecordSummary;
use crate::support::digest::Digest;
use crate::support::tables::TableSection;
use crate::support::text::cut::cut_cell;
use crate::support::text::escape::{escape_html, escape_json};
use crate::support::text::format_count;

/// Style sheet of the page.
const STYLE: &str = include_str!("page.css");
/// Script of the case browser.
const SCRIPT: &str = concat!(include_str!("page.js"), include_str!("page_case.js"));
/// Markup of the case browser.
const CASE_BROWSER: &str = include_str!("cases.html");
/// Number of entries per chunk of analyses. The script parses a chunk when one of its entries is
/// opened.
const ENTRIES_PER_CHUNK: usize = 100;

/// Maximum number of columns of a table that a phone shows as one block per row. Wider tables, such
/// as those with a column per model, scroll.
const MAX_STACKED_COLUMNS: usize = 12;

/// What a page shows.
#[derive(Clone, Debug)]
pub struct PageContent<'a> {
    /// Heading of the page.
    pub title: &'a str,
    /// The form of judging of the verdicts.
    pub form: Form,
    /// Names of the judges.
    pub judges: Vec<&'a str>,
    /// Summaries of the records of each judge.
    pub summaries: Vec<&'a [RecordSummary]>,
    /// All sections except the case browser.
    pub sections: &'a [ReportSection],
    /// The cases.
    pub browser: &'a CaseBrowser,
    /// The images of the cases.
    pub images: &'a EmbeddedImages,
}

/// Data that the script reads at start.
#[derive(Serialize)]
struct PageIndex<'a> {
    /// The form of judging, if the script shows its verdicts in another way.
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<&'static str>,
    judges: Vec<&'a str>,
    chunk: usize,
    aspects: Vec<[String; 2]>,
    criteria: Vec<[String; 3]>,
    entries: &'a [BrowserEntry],
}

/// Renders the report as an HTML page.
///
/// # Errors
///
/// The cases cannot be serialised as JSON.
pub fn render_page(content: &PageContent<'_>) -> Result<String> {
    let mut page = String::new();
    write_head(&mut page, content.title);
    let judges: Vec<String> = content.judges.iter().map(|name| escape_html(name)).collect();
    let _ = write!(
        page,
        "<header>\n<p class=\"kind\">acem3 report</p>\n<h1>{}</h1>\n<p>{}</p>\n\
         <p><a class=\"jump\" href=\"#cases\">Browse {}</a></p>\n</header>\n",
        escape_html(content.title),
        judges.join(" · "),
        count_entries(content)
    );
    write_navigation(&mut page, content.sections);
    page.push_str("<main id=\"main\">\n");
    for section in content.sections {
        // The case browser precedes the last section.
        if section.id == "method" {
            write_case_browser(&mut page, content);
        }
        write_section(&mut page, section);
    }
    page.push_str("</main>\n");
    write_data(&mut page, content)?;
    let _ = write!(page, "<script>{SCRIPT}</script>\n</body>\n</html>\n");
    Ok(page)
}

/// Writes the head. The content security policy allows the script and the style by hash and no
/// requests.
fn write_head(page: &mut String, title: &str) {
    let hash = |text: &str| STANDARD.encode(Digest::sha256(text.as_bytes()).as_bytes());
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; \
         style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"generator\" content=\"acem3\">\n<title>{}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<a class=\"skip\" href=\"#main\">Skip to the report</a>\n",
        hash(STYLE),
        hash(SCRIPT),
        escape_html(title)
    );
}

fn write_navigation(page: &mut String, sections: &[ReportSection]) {
    page.push_str("<nav aria-label=\"Sections\">\n<ul>\n");
    // The cases are far below the statistics, so their link comes first.
    page.push_str("<li><a href=\"#cases\">Cases</a></li>\n");
    for section in sections {
        let _ = writeln!(page, "<li><a href=\"#{}\">{}</a></li>", section.id, section.title);
    }
    page.push_str("</ul>\n</nav>\n");
}

fn write_section(page: &mut String, section: &ReportSection) {
    let id = section.id;
    let _ = write!(
        page,
        "<section id=\"{id}\" aria-labelledby=\"{id}-h\">\n<h2 id=\"{id}-h\">{}</h2>\n",
        section.title
    );
    for (i, block) in section.blocks.iter().enumerate() {
        match block {
            SectionBlock::Paragraph(text) => write_paragraph(page, text),
            SectionBlock::Judge(name) => {
                let _ = writeln!(page, "<h3>{}</h3>", escape_html(name));
            }
            SectionBlock::Findings(findings) => {
                page.push_str("<dl class=\"findings\">\n");
                for (topic, finding) in findings {
                    let (topic, finding) = (escape_html(topic), escape_prose(finding));
                    let _ = writeln!(page, "<div><dt>{topic}</dt><dd>{finding}</dd></div>");
                }
                page.push_str("</dl>\n");
            }
            SectionBlock::Table(section) => write_table(page, section, &[]),
            SectionBlock::Cases(section, entries) => write_table(page, section, entries),
            SectionBlock::Charts(title, charts) => {
                page.push_str("<figure class=\"charts\">\n");
                for (j, chart) in charts.iter().enumerate() {
                    let _ = writeln!(page, "{}", chart.to_svg(&format!("{id}-{i}-{j}")));
                }
                let caption = charts.first().map_or("", |chart| &chart.description);
                let (title, caption) = (escape_prose(title), escape_prose(caption));
                let _ = write!(
                    page,
                    "<figcaption><strong>{title}</strong> {caption}</figcaption>\n</figure>\n"
                );
            }
        }
    }
    page.push_str("</section>\n");
}

/// Escapes text of the program and joins numbers and units with no-break spaces.
fn escape_prose(text: &str) -> String {
    escape_html(text).replace(" %", "\u{a0}%").replace("(n ", "(n\u{a0}")
}

/// Writes a paragraph and keeps its line breaks.
fn write_paragraph(page: &mut String, text: &str) {
    let lines: Vec<String> = text.lines().map(escape_prose).collect();
    let _ = writeln!(page, "<p>{}</p>", lines.join("<br>\n"));
}

/// Writes a table. `entries` are the indices of case browser entries, one per row; the first cell
/// of a row links to its entry.
fn write_table(page: &mut String, section: &TableSection, entries: &[usize]) {
    let title = escape_html(&section.title);
    let is_narrow = section.table.header.len() <= MAX_STACKED_COLUMNS;
    let class = match (entries.is_empty(), is_narrow) {
        (false, true) => " class=\"words stack\"",
        (false, false) => " class=\"words\"",
        (true, true) => " class=\"stack\"",
        (true, false) => "",
    };
    let _ = write!(
        page,
        "<div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"{title}\">\n<table{class}>\n\
         <caption>{title}</caption>\n<thead>\n<tr>"
    );
    for cell in &section.table.header {
        let _ = match cell.as_str() {
            "" => write!(page, "<td></td>"),
            cell => write!(page, "<th scope=\"col\">{}</th>", escape_html(&cut_cell(cell))),
        };
    }
    page.push_str("</tr>\n</thead>\n<tbody>\n");
    for (i, row) in section.table.rows.iter().enumerate() {
        page.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let text = escape_html(&cut_cell(cell.trim_start()));
            let _ = match (column, entries.get(i)) {
                (0, Some(entry)) => write!(
                    page,
                    "<th scope=\"row\"><a href=\"#cases?open={}\">{text}</a></th>",
                    entry + 1
                ),
                (0, None) if cell.starts_with("  ") => {
                    write!(page, "<th scope=\"row\" class=\"below\">{text}</th>")
                }
                (0, None) => write!(page, "<th scope=\"row\">{text}</th>"),
                _ if is_narrow => {
                    let header = section.table.header.get(column).map_or("", String::as_str);
                    write!(
                        page,
                        "<td data-label=\"{}\">{text}</td>",
                        escape_html(&cut_cell(header))
                    )
                }
                _ => write!(page, "<td>{text}</td>"),
            };
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table>\n</div>\n");
    if !section.notes.is_empty() {
        page.push_str("<ul class=\"notes\">\n");
        for note in &section.notes {
            let _ = writeln!(page, "<li>{}</li>", escape_prose(note));
        }
        page.push_str("</ul>\n");
    }
}

/// Writes the markup of the case browser, which the script fills.
fn write_case_browser(page: &mut String, content: &PageContent<'_>) {
    let (n, images) = (count_entries(content), content.images);
    let image_count = if images.uris.is_empty() {
        "no image".to_owned()
    } else {
        format_count(images.uris.len() as u64, "image")
    };
    let mut intro = format!("{n}, {image_count} in this file.");
    for (reason, n) in &images.missing {
        let _ = write!(intro, " {} not shown: {reason}.", format_count(*n as u64, "image"));
    }
    if let Some(name) = &images.first_not_found {
        let _ = write!(
            intro,
            " To show them, write the report again with --images DIR, where DIR is the folder that contains {name}."
        );
    }
    page.push_str(&CASE_BROWSER.replace("{intro}", &escape_html(&intro)));
}

/// Counts the entries of the case browser: pairs, or verdicts on other numbers of responses.
fn count_entries(content: &PageContent<'_>) -> String {
    let entries = &content.browser.entries;
    let unit = match content.form {
        Form::Correctness => content.form.unit(),
        _ if entries.iter().all(|entry| entry.models.len() == 2) => "pair",
        _ => "verdict",
    };
    format_count(entries.len() as u64, unit)
}

/// Writes the data of the cases: the index, the chunks of analyses and the images.
fn write_data(page: &mut String, content: &PageContent<'_>) -> Result<()> {
    let PageContent { form, judges, browser, images, .. } = content;
    let (aspects, criteria) = rubric_index(&content.summaries);
    let index = PageIndex {
        form: (*form == Form::Correctness).then_some(form.name()),
        judges: judges.clone(),
        chunk: ENTRIES_PER_CHUNK,
        aspects,
        criteria,
        entries: &browser.entries,
    };
    let text = serde_json::to_string(&index).context("could not serialise the cases as JSON")?;
    let _ = writeln!(
        page,
        "<script type=\"application/json\" id=\"index\">{}</script>",
        escape_json(&text)
    );
    for (i, chunk) in browser.details.chunks(ENTRIES_PER_CHUNK).enumerate() {
        let _ = writeln!(
            page,
            "<script type=\"application/json\" id=\"details-{i}\">[{}]</script>",
            escape_json(&chunk.join(","))
        );
    }
    for (i, uri) in images.uris.iter().enumerate() {
        let _ = writeln!(page, "<script type=\"text/plain\" id=\"picture-{i}\">{uri}</script>");
    }
    Ok(())
}

/// Returns key and name of each aspect, and key, name and aspect of each criterion, of ACE-M³ and of the
/// rubrics of the records.
fn rubric_index(summaries: &[&[RecordSummary]]) -> (Vec<[String; 2]>, Vec<[String; 3]>) {
    let summaries = summaries.iter().copied().flatten();
    let others = summaries.flat_map(|summary| summary.criteria_of_rubric.iter().copied());
    let others: BTreeSet<(Aspect, Criterion)> = others.collect();
    let known = Criterion::ALL.into_iter().filter_map(|c| Some((c.aspect()?, c)));
    let criteria: Vec<(Aspect, Criterion)> = known.chain(others).collect();
    let mut aspects: Vec<Aspect> = criteria.iter().map(|(aspect, _)| *aspect).collect();
    aspects.dedup();
    let criterion =
        |(a, c): (Aspect, Criterion)| [c.key().to_owned(), c.name(), a.key().to_owned()];
    let aspects = aspects.into_iter().map(|a| [a.key().to_owned(), a.name()]);
    (aspects.collect(), criteria.into_iter().map(criterion).collect())
}
