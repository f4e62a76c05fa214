//! KV caches and branches of the tiny decoder: cached and recomputed results are equal.

use std::sync::Arc;

use acem3_experts::decoder::{BatchLayout, CachedSequence, Head, KvCache, Trunk};
use acem3_experts::ops::AttentionMask;
use acem3_kernels::linear;
use candle::{Device, Tensor};

use crate::tiny_panel;

/// A tiny decoder, split into trunk and head.
struct TinyDecoder {
    trunk: Trunk,
    head: Head,
}

/// The caches of one sequence: trunk and head.
type Caches = (Arc<KvCache>, Arc<KvCache>);

impl TinyDecoder {
    fn new() -> Self {
        let tokenizer = tiny_panel::tokenizer();
        let config = tiny_panel::config(&tokenizer);
        let vb = tiny_panel::var_builder(tiny_panel::weights(&tokenizer, 11));
        Self {
            trunk: Trunk::load(&vb, &config, 2).unwrap(),
            head: Head::load(&vb, &config, 2).unwrap(),
        }
    }

    /// Returns the logits of complete sequences, computed without caches.
    fn full_logits(&self, tokens: &[u32], layout: &BatchLayout) -> Vec<Vec<f32>> {
        let x = self.trunk.embed(tokens).unwrap();
        let x = self.trunk.forward(&x, layout).unwrap();
        let x = self.head.forward(&x, layout).unwrap();
        self.head.logits(&x).unwrap().to_vec2().unwrap()
    }

    /// Returns the logits of the new tokens of several sequences in one batch, and the caches after
    /// them.
    fn step_batch(&self, rows: &[(&Caches, &[u32])]) -> (Vec<Vec<Vec<f32>>>, Vec<Caches>) {
        let fork = |select: fn(&Caches) -> &Arc<KvCache>| -> Vec<KvCache> {
            rows.iter().map(|(caches, _)| select(caches).fork()).collect()
        };
        let (mut trunk_caches, mut head_caches) = (fork(|c| &c.0), fork(|c| &c.1));
        let all: Vec<u32> = rows.iter().flat_map(|(_, t)| t.iter().copied()).collect();
        let x = self.trunk.embed(&all).unwrap();
        let x = self.trunk.forward_cached(&x, &mut cached_sequences(&mut trunk_caches, rows));
        let x =
            self.head.forward_cached(&x.unwrap(), &mut cached_sequences(&mut head_caches, rows));
        let logits = self.head.logits(&x.unwrap()).unwrap();
        let mut logits = logits.to_vec2::<f32>().unwrap().into_iter();
        let parts = rows.iter().map(|(_, t)| logits.by_ref().take(t.len()).collect());
        let parts = parts.collect();
        let caches = trunk_caches.into_iter().zip(head_caches);
        (parts, caches.map(|(trunk, head)| (trunk.into(), head.into())).collect())
    }

    /// Returns the logits of the new tokens of one sequence, and the caches after them.
    fn step_one(&self, caches: &Caches, tokens: &[u32]) -> (Vec<Vec<f32>>, Caches) {
        let (mut logits, mut caches) = self.step_batch(&[(caches, tokens)]);
        (logits.remove(0), caches.remove(0))
    }
}

/// Pairs each cache with the number of its new tokens.
fn cached_sequences<'a>(
    caches: &'a mut [KvCache],
    rows: &[(&Caches, &[u32])],
) -> Vec<CachedSequence<'a>> {
    let rows = caches.iter_mut().zip(rows);
    rows.map(|(cache, (_, tokens))| CachedSequence::causal(tokens.len(), cache)).collect()
}

fn empty_caches() -> Caches {
    (KvCache::new(2).into(), KvCache::new(1).into())
}

fn tokens(n: u32, salt: u32) -> Vec<u32> {
    (0..n).map(|i| (i * i * 7 + i * salt + salt) % 256).collect()
}

fn assert_near(actual: &[Vec<f32>], expected: &[Vec<f32>], label: &str) {
    assert_eq!(actual.len(), expected.len(), "{label}");
    let scale = expected.iter().flatten().fold(0f32, |m, v| m.max(v.abs()));
    for (i, (actual, expected)) in actual.iter().zip(expected).enumerate() {
        for (actual, expected) in actual.iter().zip(expected) {
            let difference = (actual - expected).abs() / scale;
            assert!(difference < 1e-5, "{label}, token {i}: {actual}, expected {expected}");
        }
    }
}

#[test]
fn cached_decoding_equals_full_forward_pass() {
    let decoder = TinyDecoder::new();
    let all = tokens(50, 3);
    let expected = decoder.full_logits(&all, &BatchLayout::causal(50));
    for steps in [vec![50], vec![1; 50], vec![17, 1, 1, 30, 1], vec![16, 16, 18]] {
        let (mut caches, mut actual, mut from) = (empty_caches(), Vec::new(), 0);
        for n in &steps {
            let (logits, new_caches) = decoder.step_one(&caches, &all[from..from + n]);
            actual.extend(logits);
            caches = new_caches;
            from += n;
        }
        assert_eq!((caches.0.len(), caches.1.len()), (50, 50));
        assert_near(&actual, &expected, &format!("steps {steps:?}"));
    }
}

#[test]
fn cache_forks_are_independent() {
    let decoder = TinyDecoder::new();
    let (_, base) = decoder.step_one(&empty_caches(), &tokens(20, 1));
    let (first, second) = (tokens(9, 2), tokens(9, 5));
    let reference = decoder.step_one(&base, &first).0;
    // Two forks of the base get tokens in one batch, a third one alone.
    let (mut a, mut b, mut c) = (base.clone(), base.clone(), base.clone());
    let mut actual: [Vec<Vec<f32>>; 3] = Default::default();
    for i in 0..9 {
        let (logits, new_caches) = decoder.step_batch(&[(&a, &first[i..=i]), (&b, &second[i..=i])]);
        for (actual, logits) in actual.iter_mut().zip(logits) {
            actual.extend(logits);
        }
        [a, b] = new_caches.try_into().unwrap();
        let (logits, new_caches) = decoder.step_one(&c, &first[i..=i]);
        actual[2].extend(logits);
        c = new_caches;
    }
    assert_eq!(actual[0], actual[2], "a fork depends on another fork");
    assert_ne!(actual[0], actual[1]);
    assert_near(&actual[0], &reference, "one by one");
    assert_eq!((base.0.len(), a.0.len()), (20, 29));
    assert_eq!(decoder.step_one(&base, &first).0, reference, "the base");
}

#[test]
fn logits_do_not_depend_on_batch() {
    let decoder = TinyDecoder::new();
    let prompts = [(3, 1), (40, 2), (1, 3), (17, 4), (16, 5)].map(|(n, salt)| tokens(n, salt));
    let starts: Vec<Caches> =
        prompts.iter().map(|prompt| decoder.step_one(&empty_caches(), prompt).1).collect();
    let new_tokens = [(1, 1), (5, 2), (33, 3), (1, 4), (2, 5)].map(|(n, salt)| tokens(n, salt + 9));
    let expected: Vec<_> = (0..5).map(|i| decoder.step_one(&starts[i], &new_tokens[i]).0).collect();
    for order in [vec![0, 1, 2, 3, 4], vec![4, 2, 0], vec![3, 1], vec![2, 3, 4, 0, 1]] {
        let rows: Vec<_> = order.iter().map(|i| (&starts[*i], &new_tokens[*i][..])).collect();
        let (actual, _) = decoder.step_batch(&rows);
        for (i, actual) in order.iter().zip(actual) {
            assert_eq!(actual, expected[*i], "sequence {i} of {order:?}");
        }
    }
    // Sequences that share the same empty caches give equal logits too.
    let shared = empty_caches();
    let rows: Vec<_> = prompts.iter().map(|p| (&shared, &p[..])).collect();
    for (prompt, actual) in prompts.iter().zip(decoder.step_batch(&rows).0) {
        assert_eq!(actual, decoder.step_one(&empty_caches(), prompt).0);
    }
}

#[test]
fn logits_do_not_depend_on_pool_size() {
    let decoder = TinyDecoder::new();
    let work = || {
        let (first, second) = (tokens(70, 1), tokens(33, 2));
        decoder.step_batch(&[(&empty_caches(), &first[..]), (&empty_caches(), &second[..])]).0
    };
    let expected = work();
    for threads in [1, 2, 4] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        assert_eq!(pool.unwrap().install(work), expected, "{threads} threads");
    }
}

#[test]
fn branches_equal_plain_sequences() {
    let decoder = TinyDecoder::new();
    let prefix = tokens(12, 1);
    let branches = [tokens(7, 2), tokens(1, 3), tokens(9, 4)];
    let (mut all, mut branch_ids, mut positions) = (prefix.clone(), vec![0u32; 12], Vec::new());
    positions.extend(0..12u32);
    for (branch, id) in branches.iter().zip(1..) {
        all.extend(branch);
        branch_ids.extend(branch.iter().map(|_| id));
        positions.extend(12..12 + branch.len() as u32);
    }
    let layout = BatchLayout {
        batch_size: 1,
        positions: positions.into(),
        mask: AttentionMask::Branches { tokens_per_row: all.len(), branch_ids: branch_ids.into() },
    };
    let actual = decoder.full_logits(&all, &layout);
    let mut from = 12;
    for branch in &branches {
        let plain = [&prefix[..], &branch[..]].concat();
        let expected = decoder.full_logits(&plain, &BatchLayout::causal(plain.len()));
        assert_near(&actual[..12], &expected[..12], "the prefix");
        let branch_logits = &actual[from..from + branch.len()];
        assert_near(branch_logits, &expected[12..], "a branch");
        from += branch.len();
    }
}

#[test]
fn mismatched_batch_layout_is_an_error() {
    let decoder = TinyDecoder::new();
    let x = decoder.trunk.embed(&tokens(6, 1)).unwrap();
    let mut layout = BatchLayout::causal(5);
    assert!(decoder.trunk.forward(&x, &layout).is_err());
    layout = BatchLayout::causal(6);
    layout.mask = AttentionMask::Branches { branch_ids: vec![0; 5].into(), tokens_per_row: 5 };
    assert!(decoder.trunk.forward(&x, &layout).is_err());
    layout = BatchLayout::causal(6);
    layout.batch_size = 4;
    assert!(decoder.trunk.forward(&x, &layout).is_err());
    let mut cache = KvCache::new(2);
    let mut rows = [CachedSequence::causal(5, &mut cache)];
    assert!(decoder.trunk.forward_cached(&x, &mut rows).is_err());
    let mut shallow = KvCache::new(1);
    let mut rows = [CachedSequence::causal(6, &mut shallow)];
    assert!(decoder.trunk.forward_cached(&x, &mut rows).is_err());
}

/// Matrix products of random shapes.
#[test]
fn matmul_rows_do_not_depend_on_batch() {
    let test_matrix = |n: usize, c: usize, salt: usize| {
        let values: Vec<f32> =
            (0..n * c).map(|i| ((i * (2 * salt + 1)) as f32 * 0.73).sin()).collect();
        Tensor::from_vec(values, (n, c), &Device::Cpu).unwrap()
    };
    for i in 0..40 {
        let (c_in, c_out) = (1 + i * 7919 % 1203, 1 + i * 104_729 % 511);
        let all = 4 + i * 31 % 150;
        let (x, w) = (test_matrix(all, c_in, i), test_matrix(c_out, c_in, i + 1));
        let expected = linear(&x, &w, None).unwrap().to_vec2::<f32>().unwrap();
        for n in [1, 2, 3, 1 + i % all, all - 1] {
            let from = (i * 17) % (all - n + 1);
            let some = x.narrow(0, from, n).unwrap();
            let actual = linear(&some, &w, None).unwrap().to_vec2::<f32>().unwrap();
            assert!(
                actual == expected[from..from + n],
                "{n} of {all} rows of {c_in} to {c_out} differ"
            );
        }
    }
}
