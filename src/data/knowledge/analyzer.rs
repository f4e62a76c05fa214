//! From text to terms: lower-case words, without stop words, stemmed.

use tantivy::tokenizer::{
    Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, StopWordFilter, TextAnalyzer,
};

use super::manifest::IndexSettings;

/// Longer words are no terms: they are sequences of bases or encoded bytes.
const MAX_WORD_BYTES: usize = 60;

/// Creates the analyzer of an index. Texts and queries have the same.
pub(super) fn create_analyzer(settings: &IndexSettings) -> TextAnalyzer {
    let words = TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(MAX_WORD_BYTES))
        .filter(LowerCaser);
    let mut words = words.dynamic();
    if !settings.keeps_stop_words
        && let Some(stop_words) = StopWordFilter::new(Language::English)
    {
        words = words.filter_dynamic(stop_words);
    }
    if settings.stemming {
        words = words.filter_dynamic(Stemmer::new(Language::English));
    }
    words.build()
}

/// Returns the terms of a text in their order.
pub(super) fn analyze(analyzer: &TextAnalyzer, text: &str) -> Vec<String> {
    let mut analyzer = analyzer.clone();
    let mut stream = analyzer.token_stream(text);
    let mut terms = Vec::new();
    stream.process(&mut |token| terms.push(token.text.clone()));
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_choose_the_filters() {
        let text = "What are the Treatments of Crohn's disease?";
        let terms = |stemming: bool, keeps_stop_words: bool| {
            let settings = IndexSettings { stemming, keeps_stop_words, ..IndexSettings::default() };
            analyze(&create_analyzer(&settings), text).join(" ")
        };
        assert_eq!(terms(false, true), "what are the treatments of crohn s disease");
        assert_eq!(terms(true, true), "what are the treatment of crohn s diseas");
        assert_eq!(terms(false, false), "what treatments crohn s disease");
    }
}
