"""Writes text/*: what the reference implementations of text metrics make of random pairs of texts.

    python -m venv venv
    venv/bin/pip install numpy==2.4.6 safetensors==0.8.0 sacrebleu==2.6.0 rouge-score==0.1.2 \
        nltk==3.10.4 bert-score==0.3.13 torch==2.15.0 transformers==4.57.1 tokenizers==0.22.2
    git clone https://github.com/microsoft/LLaVA-Med && git -C LLaVA-Med checkout ad758b6
    venv/bin/python make_text_metrics.py LLaVA-Med/llava/eval

The pairs are drawn from `pieces.json` by `Draw`, which tests/it/text_pairs.rs writes down once more, so
that only outputs are stored: `lexical.safetensors`, a row for each pair, a column for each name in
`columns.json`, BLEU over 100; and `corpus.json`, BLEU of parts of the pairs. `bert`, `roberta` and
`bart` are tiny random checkpoints as transformers saves them; `models.json` holds what bert-score (one pair
at a time: in a batch it takes padding for a word that is like no other) and the formula of BARTScore
(`bart_score.py` of neulab/BARTScore, the labels' mean log-likelihood) make of the first pairs.
`bert-old` is `bert` with its names, vocabulary and weights as older repositories have them. The tests are in
tests/it/text_metrics.rs and tests/it/text_models.rs.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file

HERE = Path(__file__).parent
OUT = HERE / "text"
PAIRS = 3000
MODEL_PAIRS = 120
CHINESE_PAIRS = 1000
# Pieces of every kind that moves a metric; a text is a few of them, joined.
PIECES = """
the a an The A AN left right lung lungs Lungs liver kidney heart brain mass masses nodule nodules no yes
No Yes not normal abnormal noted none zero one two three ten 1 2 10 3.5 1,000 0.75 T1 T2 T2-weighted MRI CT
x-ray X-Ray PET/CT left-sided there is are was in of with and or pleural effusion effusions consolidation
enlarged enlarging enlargement relational conditional differently happily happy enjoyed dying skies news
succeed proceed theology archaeologi hopefulness formality sensitivities triplicate formative electrical
revival adjustment adoption homologous effective controlling agreed feed plastered motoring sing conflated
hopping falling hissing fizzed failing filing generalizations oscillators flies tied dies died tries
yyyy syzygy boy ation ational tional izer alli bli eed ing ed ies s ss sses y logi fulli ment ement ion ly
don't can't patient's 'a' "quoted" (in) [sic] {x} <b> a_b a+b=c x>y @home `code` 50% #1 $5 & * ^ ~ | \\ / ; : !
? . , ... ., ,. -- - ' " () . . 5. .5 5,000.5 1.2.3 a.b a,b 3-4 2- -2 &amp; &lt; &quot; &gt; <skipped>
café naïve Ünal ÉTÉ straße İstanbul Kelvin µm 5µm cm² ½ α-helix β Σίσυφος ΟΔΟΣ 肺 左肺 肺癌。 肝脏，正常 はい 폐 рак Лёгкое
הריאה رئة фиброз… – — “left” ‘a’ • → ± ≤ 🫁 👍🏽 e\u0301 ﬁbrosis １２ 病灶2个 a° thé ạ
""".split()
# Between pieces: mostly a space.
JOINTS = [" "] * 12 + ["", "", "  ", "\n", "\t", "-\n", ", ", ". ", "\u00a0", "\u001c", "\u2009", "\r\n"]
# Texts that are drawn as they are.
WHOLE = ["", " ", "\n", "...", "?!", "the", "A an the.", "no", "yes", "No.", "Yes, it is.", "肺", "🫁"]


class Draw:
    """A linear congruential generator (Knuth's MMIX), its upper bits."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n

    def text(self, most):
        if self.below(16) == 0:
            return WHOLE[self.below(len(WHOLE))]
        drawn = ""
        for i in range(1 + self.below(most)):
            joint = JOINTS[self.below(len(JOINTS))]
            drawn += (joint if i else "") + PIECES[self.below(len(PIECES))]
        return drawn

    def like(self, text):
        """The text with some words exchanged, doubled or left out; words are what spaces divide."""
        words = []
        for word in text.split(" "):
            chance = self.below(10)
            if chance == 0:
                words.append(PIECES[self.below(len(PIECES))])
            elif chance == 1:
                words += [word, word]
            elif chance > 2:
                words.append(word)
        return " ".join(words)

    def pair(self):
        """An answer and its reference."""
        most = [4, 12, 40][self.below(3)]
        answer = self.text(most)
        return answer, self.like(answer) if self.below(3) else self.text(most)


def lexical(pairs, llava_med):
    import sacrebleu
    from rouge_score.rouge_scorer import RougeScorer
    from transformers.data.metrics import squad_metrics

    sys.path.insert(0, llava_med)
    from eval_metrics.evaluate_metrics import calculate_f1score
    from eval_metrics.glossary import normalize_word

    bleu = {n: sacrebleu.BLEU(max_ngram_order=n, effective_order=True) for n in range(1, 5)}
    rouge = {name: RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=stem)
             for name, stem in [("", False), ("stem_", True)]}

    def squad(answer, reference):
        said, wanted = map(squad_metrics.get_tokens, (answer, reference))
        bag = lambda words: {word: words.count(word) for word in words}
        same = sum(min(n, bag(wanted).get(word, 0)) for word, n in bag(said).items())
        return {"exact_match": squad_metrics.compute_exact(reference, answer),
                "f1": squad_metrics.compute_f1(reference, answer),
                "f1_precision": same / max(len(said), 1), "f1_recall": same / max(len(wanted), 1),
                "has_words": bool(wanted)}

    def published(answer, reference):
        """The branches of `run_eval.py` for a closed and for an open question; -1 for no number."""
        answer, reference = normalize_word(answer.lower()), normalize_word(reference.lower())
        right = 0 if not ("yes" in answer or "no" in answer) else 1 if reference in answer else -1
        return {"llava_med_closed": right,
                "llava_med_recall": calculate_f1score(answer, reference)[2]}

    rows = []
    for answer, reference in pairs:
        row = squad(answer, reference) | published(answer, reference)
        row |= {f"bleu{n}": b.sentence_score(answer, [reference]).score / 100 for n, b in bleu.items()}
        for stem, scorer in rouge.items():
            for name, score in scorer.score(reference, answer).items():
                row |= {f"{stem}{name}": score.fmeasure, f"{stem}{name}_precision": score.precision,
                        f"{stem}{name}_recall": score.recall}
        rows.append(row)
    names = list(rows[0])
    values = np.array([[row[name] for name in names] for row in rows], dtype=np.float32)
    save_file({"values": values}, OUT / "lexical.safetensors")
    (OUT / "columns.json").write_text(json.dumps(names) + "\n")

    corpus = []
    for start, end in [(0, 1), (0, 10), (0, 700), (700, PAIRS), (0, PAIRS)]:
        # A reference without a word has no place in a corpus.
        part = [pair for pair in pairs[start:end] if bleu[1].tokenizer(pair[1])]
        answers, references = zip(*part)
        scores = {n: sacrebleu.BLEU(max_ngram_order=n).corpus_score(answers, [references]).score
                  for n in range(1, 5)}
        corpus.append({"start": start, "end": end, "bleu": list(scores.values())})
    (OUT / "corpus.json").write_text(json.dumps(corpus) + "\n")


def chinese(pairs):
    """BLEU-1 to -4 of each answer where every Chinese character is a word."""
    import sacrebleu

    bleu = [sacrebleu.BLEU(max_ngram_order=n, effective_order=True, tokenize="zh") for n in range(1, 5)]
    rows = [[round(b.sentence_score(answer, [reference]).score, 6) for b in bleu] for answer, reference in pairs]
    (OUT / "chinese.json").write_text(json.dumps(rows) + "\n")


def tokenizers(pairs):
    """A WordPiece vocabulary and a byte-level one, learnt from the pieces."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    lines = [" ".join(PIECES)] * 2
    word = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    word.normalizer = normalizers.BertNormalizer(lowercase=True)
    word.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    word.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=400, special_tokens=special))
    byte = Tokenizer(models.BPE())
    byte.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    byte.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return word, byte


def checkpoints(pairs):
    from transformers import (
        BartConfig, BartForConditionalGeneration, BartTokenizer, BartTokenizerFast, BertConfig,
        BertForPreTraining, BertTokenizer, BertTokenizerFast, RobertaConfig, RobertaForMaskedLM,
        RobertaTokenizer, RobertaTokenizerFast)

    word, byte = tokenizers(pairs)
    scratch = OUT / "scratch"
    scratch.mkdir()
    word.model.save(str(scratch))
    byte.model.save(str(scratch))
    vocab, merges = str(scratch / "vocab.json"), str(scratch / "merges.txt")
    pairs_of = {"vocab_file": vocab, "merges_file": merges}
    torch.manual_seed(5)
    sizes = dict(hidden_size=24, num_hidden_layers=3, num_attention_heads=4, intermediate_size=40)
    made = {
        "bert": (BertForPreTraining(BertConfig(
            vocab_size=400, max_position_embeddings=48, hidden_act="gelu_new", **sizes)),
            BertTokenizerFast(vocab_file=str(scratch / "vocab.txt"), model_max_length=48)),
        "roberta": (RobertaForMaskedLM(RobertaConfig(
            vocab_size=400, max_position_embeddings=50, type_vocab_size=1, layer_norm_eps=1e-5,
            **sizes)),
            RobertaTokenizerFast(**pairs_of, model_max_length=48)),
        "bart": (BartForConditionalGeneration(BartConfig(
            vocab_size=400, max_position_embeddings=64, d_model=24, encoder_layers=2,
            decoder_layers=3, encoder_attention_heads=4, decoder_attention_heads=3,
            encoder_ffn_dim=40, decoder_ffn_dim=32, scale_embedding=True,
            activation_function="gelu")),
            BartTokenizerFast(**pairs_of, model_max_length=64)),
    }
    for name, (model, tokenizer) in made.items():
        # Weights as drawn are so small that every layer adds next to nothing.
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(6 if parameter.dim() > 1 else 1).add_(
                    torch.randn_like(parameter) * 0.05)
        if name == "bart":
            model.final_logits_bias.normal_()
        model.save_pretrained(OUT / name)
        tokenizer.save_pretrained(OUT / name)
        for extra in ["special_tokens_map.json", "generation_config.json", "vocab.json", "merges.txt",
                      "vocab.txt"]:
            (OUT / name / extra).unlink(missing_ok=True)
    # The same BERT as repositories of 2019 hold it: `gamma` and `beta`, a pickle, a vocabulary alone.
    old = OUT / "bert-old"
    old.mkdir()
    state = {key.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
        "LayerNorm.bias", "LayerNorm.beta"): value for key, value in made["bert"][0].state_dict().items()}
    torch.save(state, old / "pytorch_model.bin")
    shutil.copy(OUT / "bert" / "config.json", old)
    shutil.copy(scratch / "vocab.txt", old)
    (old / "tokenizer_config.json").write_text('{"do_lower_case": true, "model_max_length": 48}\n')
    # A byte-level vocabulary alone, as BART's authors publish it, without weights.
    shutil.copytree(OUT / "bart", OUT / "bart-old", ignore=shutil.ignore_patterns(
        "tokenizer.json", "model.safetensors", "tokenizer_config.json"))
    shutil.copy(vocab, OUT / "bart-old")
    shutil.copy(merges, OUT / "bart-old")
    slow = {"bert": BertTokenizer(vocab_file=str(scratch / "vocab.txt"), model_max_length=48),
            "roberta": RobertaTokenizer(**pairs_of, model_max_length=48),
            "bart": BartTokenizer(**pairs_of, model_max_length=64)}
    for name, tokenizer in slow.items():
        tokenizer.save_pretrained(scratch / name)
        shutil.copy(OUT / name / "config.json", scratch / name)
        shutil.copy(OUT / name / "model.safetensors", scratch / name)
    return scratch


def models(pairs, scratch):
    import bert_score
    from transformers import BartForConditionalGeneration, BartTokenizer

    answers, references = map(list, zip(*pairs))
    (OUT / "baseline.tsv").write_text("LAYER,P,R,F\n" + "".join(
        f"{layer},{0.1 * layer + 0.05},{0.1 * layer + 0.02},{0.1 * layer + 0.03}\n" for layer in range(4)))
    expected = {}
    for name in ["bert", "roberta"]:
        for layer in range(4):
            for idf in [False, True]:
                scores = bert_score.score(
                    answers, references, model_type=str(scratch / name), num_layers=layer, idf=idf,
                    batch_size=1, nthreads=0, device="cpu")
                key = f"{name}_{layer}{'_idf' if idf else ''}"
                expected[key] = [[round(x, 7) for x in part.tolist()] for part in scores]
    scores = bert_score.score(
        answers, references, model_type=str(scratch / "bert"), num_layers=2, lang="en", batch_size=1,
        nthreads=0, device="cpu", rescale_with_baseline=True, baseline_path=str(OUT / "baseline.tsv"))
    expected["bert_2_rescaled"] = [[round(x, 7) for x in part.tolist()] for part in scores]

    bart = BartForConditionalGeneration.from_pretrained(scratch / "bart").eval()
    tokenizer = BartTokenizer.from_pretrained(scratch / "bart")

    def likelihood(source, target):
        encode = lambda text: tokenizer(text, max_length=64, truncation=True, return_tensors="pt")
        source, target = encode(source), encode(target)["input_ids"]
        with torch.no_grad():
            logits = bart(**source, labels=target).logits[0]
        return torch.log_softmax(logits, 1)[range(target.shape[1]), target[0]].mean().item()

    expected["bart"] = [[round(likelihood(r, a), 7) for a, r in pairs],
                        [round(likelihood(a, r), 7) for a, r in pairs]]
    (OUT / "models.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    (OUT / "pieces.json").write_text(json.dumps(
        {"pieces": PIECES, "joints": JOINTS, "whole": WHOLE}, ensure_ascii=True) + "\n")
    draw = Draw(2026)
    drawn = [draw.pair() for _ in range(PAIRS)]
    lexical(drawn, sys.argv[1])
    chinese(drawn[:CHINESE_PAIRS])
    scratch = checkpoints(drawn)
    models(drawn[:MODEL_PAIRS], scratch)
    shutil.rmtree(scratch)
