//! SVG charts for HTML reports and files. Each chart accompanies a table with the same numbers and
//! has a text description.

use std::fmt::Write as _;

use super::chart_label::{LABEL_LINE_HEIGHT, draw_label, wrap_label};
use crate::support::files::file_form::{FileForm, contains_text, starts_with};
use crate::support::text::escape::escape_html;

/// Width of a chart in SVG units. It fits a small phone, so text stays readable there.
const WIDTH: f64 = 340.0;
/// Space left and right of the axis.
const MARGIN: f64 = 20.0;
/// Width of a label.
const LABEL_WIDTH: f64 = WIDTH - 2.0 * MARGIN;
/// Height of a row: a line of text and a mark.
const ROW_HEIGHT: f64 = 40.0;

/// Style sheet of a chart file. HTML reports have their own style sheet.
const STYLE: &str = "text{fill:#1d2226;font:12px sans-serif}.tick{fill:#565d63;font-size:11px}.title{font-weight:bold}\
    .grid{stroke:#d9d6cd}.even{stroke:#565d63;stroke-dasharray:4 3}.mark{fill:#0b5566;stroke:#0b5566;stroke-width:2}\
    path.mark{fill:none}";
/// Style of the second series in a chart file.
const SECOND_SERIES_STYLE: &str = "<style>circle.second{fill:#fff}</style>";
/// The height of a title line.
const TITLE_LINE_HEIGHT: f64 = 16.0;

/// The number of characters of a title line.
const TITLE_LINE_CHARS: usize = 50;

/// The form of a chart file.
pub(crate) const SVG_CHART: FileForm = FileForm {
    name: "a chart of acem3",
    recognise: |file| {
        let style = format!("<style>{STYLE}</style>");
        Ok(starts_with(file, "<svg xmlns=")? && contains_text(file, &style)?)
    },
};

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The title.
    pub title: String,
    /// Text description for screen readers.
    pub description: String,
    height: f64,
    body: String,
}

/// An axis.
pub(crate) struct Axis {
    /// Minimum and maximum.
    pub(crate) ends: [f64; 2],
    /// Tick values and their labels.
    pub(crate) ticks: Vec<(f64, String)>,
    /// The value of the dashed reference line.
    pub(crate) reference_line: Option<f64>,
}

/// A value with its interval.
pub(crate) struct ChartMark {
    /// The label.
    pub(crate) label: String,
    /// The value; `None` if it is undefined.
    pub(crate) value: Option<f64>,
    /// The confidence interval.
    pub(crate) interval: Option<[f64; 2]>,
    /// True for the second series (the human ceiling), drawn hollow.
    pub(crate) is_second_series: bool,
}

impl Axis {
    /// Creates an axis from 0 to 100 %.
    pub(crate) fn percent(reference_line: Option<f64>) -> Self {
        let tick = |i: u8| (f64::from(i) / 4.0, format!("{} %", 25 * u32::from(i)));
        Self { ends: [0.0, 1.0], ticks: (0..=4).map(tick).collect(), reference_line }
    }

    /// Creates an axis over the part of 0 to 100 % that contains all values and intervals, so that
    /// small differences are visible.
    pub(crate) fn zoomed(marks: &[ChartMark]) -> Self {
        let ends = marks.iter().filter_map(|mark| mark.interval).flatten();
        let all = ends.chain(marks.iter().filter_map(|mark| mark.value));
        let (low, high) = all.fold((100.0_f64, 0.0_f64), |(low, high), value| {
            let percent = 100.0 * value.clamp(0.0, 1.0);
            (low.min(percent), high.max(percent))
        });
        let enclosing = |step: u8| {
            let step = f64::from(step);
            let (first, last) = ((low / step).floor(), (high / step).ceil());
            (last - first <= 5.0 && first < last).then_some((step, first, last))
        };
        let Some((step, first, last)) = [1, 2, 5, 10].into_iter().find_map(enclosing) else {
            return Self::percent(None);
        };
        let tick = |i: u8| {
            let percent = step * (first + f64::from(i));
            (percent / 100.0, format!("{percent:.0} %"))
        };
        Self {
            ends: [step * first / 100.0, step * last / 100.0],
            ticks: (0..=(last - first) as u8).map(tick).collect(),
            reference_line: None,
        }
    }

    /// Creates an axis from a lowest to a highest score.
    pub(crate) fn points([low, high]: [u8; 2]) -> Self {
        Self {
            ends: [low, high].map(f64::from),
            ticks: (low..=high).map(|i| (f64::from(i), i.to_string())).collect(),
            reference_line: None,
        }
    }

    fn to_x(&self, value: f64) -> f64 {
        let [low, high] = self.ends;
        let fraction = ((value - low) / (high - low)).clamp(0.0, 1.0);
        MARGIN + fraction * (WIDTH - 2.0 * MARGIN)
    }

    /// Draws the lines and labels of the axis, for rows that end at `bottom`.
    fn draw(&self, bottom: f64) -> String {
        let mut svg = String::new();
        for (value, label) in &self.ticks {
            let x = self.to_x(*value);
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"4\" y2=\"{bottom:.1}\"/>\
                 <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 16.0,
                escape_html(label)
            );
        }
        if let Some(value) = self.reference_line {
            let x = self.to_x(value);
            let _ = write!(
                svg,
                "<line class=\"even\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"4\" y2=\"{bottom:.1}\"/>"
            );
        }
        svg
    }
}

impl Chart {
    /// Draws a forest plot: one row per value with its interval.
    pub(crate) fn forest(title: &str, description: &str, axis: &Axis, marks: &[ChartMark]) -> Self {
        let labels: Vec<Vec<String>> =
            marks.iter().map(|mark| wrap_label(&mark.label, LABEL_WIDTH)).collect();
        let lines: usize = labels.iter().map(Vec::len).sum();
        let more_lines = (lines - labels.len()) as f64;
        let bottom = 4.0 + ROW_HEIGHT * marks.len() as f64 + LABEL_LINE_HEIGHT * more_lines;
        let mut body = axis.draw(bottom);
        let mut y = 4.0;
        for (mark, label) in marks.iter().zip(&labels) {
            draw_label(&mut body, label, [MARGIN, y + 16.0]);
            let class = if mark.is_second_series { "mark second" } else { "mark" };
            let line = y + 28.0 + LABEL_LINE_HEIGHT * (label.len() - 1) as f64;
            y += ROW_HEIGHT + LABEL_LINE_HEIGHT * (label.len() - 1) as f64;
            if let Some([low, high]) = mark.interval.map(|ends| ends.map(|end| axis.to_x(end))) {
                let _ = write!(
                    body,
                    "<path class=\"{class}\" d=\"M{low:.1} {line:.1}H{high:.1}M{low:.1} {:.1}v8M{high:.1} {:.1}v8\"/>",
                    line - 4.0,
                    line - 4.0
                );
            }
            let _ = match mark.value {
                Some(value) => write!(
                    body,
                    "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{line:.1}\" r=\"4.5\"/>",
                    axis.to_x(value)
                ),
                None => write!(
                    body,
                    "<text class=\"tick\" x=\"{MARGIN}\" y=\"{:.1}\">undefined</text>",
                    line + 4.0
                ),
            };
        }
        Self {
            title: title.to_owned(),
            description: description.to_owned(),
            height: bottom + 24.0,
            body,
        }
    }

    /// Draws a bar chart of counts at equal steps along the axis.
    pub(crate) fn bars(title: &str, description: &str, axis: &Axis, counts: &[usize]) -> Self {
        const MAX_BAR_HEIGHT: f64 = 64.0;
        let n: usize = counts.iter().sum();
        let label = wrap_label(&format!("{title} (n {n})"), LABEL_WIDTH);
        let base = 30.0 + MAX_BAR_HEIGHT + LABEL_LINE_HEIGHT * (label.len() - 1) as f64;
        let max_count = counts.iter().max().copied().unwrap_or(0).max(1);
        let [low, high] = axis.ends;
        let step = (high - low) / counts.len().saturating_sub(1).max(1) as f64;
        let width = (axis.to_x(low + step) - axis.to_x(low)) * 0.8;
        let mut body = axis.draw(base);
        draw_label(&mut body, &label, [MARGIN, 18.0]);
        let _ = write!(
            body,
            "<line class=\"base\" x1=\"{MARGIN}\" x2=\"{:.1}\" y1=\"{base:.1}\" y2=\"{base:.1}\"/>",
            WIDTH - MARGIN
        );
        for (bin, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let height = (MAX_BAR_HEIGHT * *count as f64 / max_count as f64).max(1.0);
            let x = axis.to_x(low + step * bin as f64) - width / 2.0;
            let _ = write!(
                body,
                "<rect class=\"count\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>",
                base - height
            );
        }
        Self {
            title: title.to_owned(),
            description: description.to_owned(),
            height: base + 24.0,
            body,
        }
    }

    /// Returns the chart as an SVG element; the ids of its parts start with `id`.
    pub(crate) fn to_svg(&self, id: &str) -> String {
        format!(
            "<svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
             <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>{}</svg>",
            self.height,
            escape_html(&self.title),
            escape_html(&self.description),
            self.body
        )
    }

    /// Returns the chart as an SVG file, with its title.
    pub(crate) fn to_svg_file(&self) -> String {
        let mut title = String::new();
        let lines = wrap_title(&self.title);
        let top = TITLE_LINE_HEIGHT * lines.len() as f64 + 8.0;
        for (i, line) in lines.iter().enumerate() {
            let y = TITLE_LINE_HEIGHT * (i + 1) as f64 - top;
            let _ = write!(
                title,
                "<text class=\"title\" x=\"{MARGIN}\" y=\"{y:.0}\">{}</text>",
                escape_html(line)
            );
        }
        let height = self.height + top;
        // A separate element, because the first identifies the form of the file.
        let second = if self.body.contains("mark second") {
            SECOND_SERIES_STYLE
        } else {
            Default::default()
        };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 -{top:.0} {WIDTH} {height:.0}\" \
             width=\"{:.0}\" height=\"{:.0}\" role=\"img\"><title>{}</title><desc>{}</desc><style>{STYLE}</style>{second}\
             <rect y=\"-{top:.0}\" width=\"100%\" height=\"100%\" fill=\"#fff\"/>{title}{}</svg>\n",
            2.0 * WIDTH,
            2.0 * height,
            escape_html(&self.title),
            escape_html(&self.description),
            self.body
        )
    }
}

/// Description of a forest plot of proportions.
pub(crate) const DOTS_DESCRIPTION: &str =
    "Dots are proportions, lines their 95 % confidence intervals.";

/// Returns a label with its value in percent, for charts without a table.
pub(crate) fn label_with_value(name: &str, proportion: Option<f64>) -> String {
    proportion.map_or(name.to_owned(), |proportion| format!("{name}: {:.1} %", 100.0 * proportion))
}

/// Breaks a title into lines between words.
fn wrap_title(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= TITLE_LINE_CHARS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn svg_file_has_every_value_and_escaped_names() {
        let mark = |label: &str, value, interval| ChartMark {
            label: label.to_owned(),
            value,
            interval,
            is_second_series: false,
        };
        let marks = [
            mark("a<b", Some(0.5), Some([0.4, 0.6])),
            mark(&format!("{}/to/some/encoder", "path".repeat(8)), Some(1.0), None),
            mark("nothing", None, None),
        ];
        let title = "a set whose name is far too long to stand on a line of its own";
        let drawn = Chart::forest(title, "dots", &Axis::percent(None), &marks).to_svg_file();
        for part in
            ["a&lt;b", ">pathpath", "/to/some/</text>", ">encoder<", "undefined", "</svg>\n"]
        {
            assert!(drawn.contains(part), "{part} in {drawn}");
        }
        assert_eq!(drawn.matches("<circle").count(), 2);
        assert_eq!(drawn.matches("<path").count(), 1);
        assert_eq!(drawn.matches("class=\"title\"").count(), 2);
        assert!(!drawn.contains("a<b"));
    }

    #[test]
    fn zoomed_axis_contains_all_values() {
        let mark = |value, interval| ChartMark {
            label: String::new(),
            value,
            interval,
            is_second_series: false,
        };
        let near = [mark(Some(0.927), Some([0.91, 0.943])), mark(Some(0.953), None)];
        let axis = Axis::zoomed(&near);
        let percent = |axis: &Axis| axis.ends.map(|end| (100.0 * end).round() as u8);
        assert_eq!(percent(&axis), [91, 96]);
        let ticks: Vec<&str> = axis.ticks.iter().map(|tick| tick.1.as_str()).collect();
        assert_eq!(ticks, ["91 %", "92 %", "93 %", "94 %", "95 %", "96 %"]);
        for (far, ends) in [
            (vec![mark(Some(0.5), Some([0.02, 1.1]))], [0, 100]),
            (vec![mark(None, None)], [0, 100]),
            (vec![mark(Some(1.0), None)], [0, 100]),
            (vec![mark(Some(0.31), Some([0.11, 0.46]))], [10, 50]),
        ] {
            assert_eq!(percent(&Axis::zoomed(&far)), ends);
        }
    }

    #[test]
    fn bar_heights_are_proportional_to_counts() {
        let chart = Chart::bars("m", "counts", &Axis::points([0, 5]), &[0, 2, 1]);
        assert_eq!(chart.body.matches("<rect").count(), 2);
        assert!(chart.body.contains("m (n 3)"));
        for height in ["height=\"64.0\"", "height=\"32.0\""] {
            assert!(chart.body.contains(height), "{}", chart.body);
        }
    }
}
