//! KV caches and branches of the tiny decoder: cached and recomputed results are equal.

use std::sync::Arc;

use acem3_experts::decoder::{Head, KvCache, Row, Sight, Trunk};
use acem3_experts::ops::Visibility;
use acem3_kernels::linear;
use candle::{Device, Tensor};

use crate::tiny;

struct Decoder {
    trunk: Trunk,
    head: Head,
}

/// The caches of one sequence.
type Caches = (Arc<KvCache>, Arc<KvCache>);

impl Decoder {
    fn new() -> Self {
        let tokenizer = tiny::tokenizer();
        let config = tiny::config(&tokenizer);
        let vb = tiny::builder(tiny::weights(&tokenizer, 11));
        Self {
            trunk: Trunk::load(&vb, &config, 2).unwrap(),
            head: Head::load(&vb, &config, 2).unwrap(),
        }
    }

    /// Logits of whole sequences.
    fn whole(&self, tokens: &[u32], sight: &Sight) -> Vec<Vec<f32>> {
        let x = self.trunk.embed(tokens).unwrap();
        let x = self.trunk.forward(&x, sight).unwrap();
        let x = self.head.forward(&x, sight).unwrap();
        self.head.logits(&x).unwrap().to_vec2().unwrap()
    }

    /// Logits of new tokens of several sequences in one step, with the caches grown by them.
    fn step(&self, rows: &[(&Caches, &[u32])]) -> (Vec<Vec<Vec<f32>>>, Vec<Caches>) {
        let fork = |pick: fn(&Caches) -> &Arc<KvCache>| -> Vec<KvCache> {
            rows.iter().map(|(caches, _)| pick(caches).fork()).collect()
        };
        let (mut below, mut above) = (fork(|c| &c.0), fork(|c| &c.1));
        let all: Vec<u32> = rows.iter().flat_map(|(_, t)| t.iter().copied()).collect();
        let x = self.trunk.embed(&all).unwrap();
        let x = self.trunk.forward_cached(&x, &mut at(&mut below, rows));
        let x = self
            .head
            .forward_cached(&x.unwrap(), &mut at(&mut above, rows));
        let logits = self.head.logits(&x.unwrap()).unwrap();
        let mut logits = logits.to_vec2::<f32>().unwrap().into_iter();
        let parts = rows
            .iter()
            .map(|(_, t)| logits.by_ref().take(t.len()).collect());
        let parts = parts.collect();
        let caches = below.into_iter().zip(above);
        (parts, caches.map(|(b, a)| (b.into(), a.into())).collect())
    }

    fn alone(&self, caches: &Caches, tokens: &[u32]) -> (Vec<Vec<f32>>, Caches) {
        let (mut logits, mut caches) = self.step(&[(caches, tokens)]);
        (logits.remove(0), caches.remove(0))
    }
}

fn at<'a>(caches: &'a mut [KvCache], rows: &[(&Caches, &[u32])]) -> Vec<Row<'a>> {
    let rows = caches.iter_mut().zip(rows);
    rows.map(|(cache, (_, tokens))| Row {
        tokens: tokens.len(),
        cache,
    })
    .collect()
}

fn empty() -> Caches {
    (KvCache::new(2).into(), KvCache::new(1).into())
}

fn tokens(n: u32, salt: u32) -> Vec<u32> {
    (0..n)
        .map(|i| (i * i * 7 + i * salt + salt) % 256)
        .collect()
}

fn assert_near(got: &[Vec<f32>], want: &[Vec<f32>], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    let scale = want.iter().flatten().fold(0f32, |m, v| m.max(v.abs()));
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        for (got, want) in got.iter().zip(want) {
            let far = (got - want).abs() / scale;
            assert!(far < 1e-5, "{what}, token {i}: {got}, expected {want}");
        }
    }
}

#[test]
fn cached_decoding_equals_full_forward_pass() {
    let decoder = Decoder::new();
    let all = tokens(50, 3);
    let want = decoder.whole(&all, &Sight::causal(50));
    for steps in [
        vec![50],
        vec![1; 50],
        vec![17, 1, 1, 30, 1],
        vec![16, 16, 18],
    ] {
        let (mut caches, mut got, mut from) = (empty(), Vec::new(), 0);
        for n in &steps {
            let (logits, grown) = decoder.alone(&caches, &all[from..from + n]);
            got.extend(logits);
            caches = grown;
            from += n;
        }
        assert_eq!((caches.0.len(), caches.1.len()), (50, 50));
        assert_near(&got, &want, &format!("steps {steps:?}"));
    }
}

#[test]
fn cache_forks_are_independent() {
    let decoder = Decoder::new();
    let (_, base) = decoder.alone(&empty(), &tokens(20, 1));
    let (one, two) = (tokens(9, 2), tokens(9, 5));
    let undisturbed = decoder.alone(&base, &one).0;
    // Two forks and the base grow in turns, in one step and in several steps.
    let (mut a, mut b, mut c) = (base.clone(), base.clone(), base.clone());
    let mut got: [Vec<Vec<f32>>; 3] = Default::default();
    for i in 0..9 {
        let (logits, grown) = decoder.step(&[(&a, &one[i..=i]), (&b, &two[i..=i])]);
        for (got, logits) in got.iter_mut().zip(logits) {
            got.extend(logits);
        }
        [a, b] = grown.try_into().unwrap();
        let (logits, grown) = decoder.alone(&c, &one[i..=i]);
        got[2].extend(logits);
        c = grown;
    }
    assert_eq!(got[0], got[2], "a sibling changed what a fork sees");
    assert_ne!(got[0], got[1]);
    assert_near(&got[0], &undisturbed, "one by one");
    assert_eq!((base.0.len(), a.0.len()), (20, 29));
    assert_eq!(decoder.alone(&base, &one).0, undisturbed, "the base");
}

#[test]
fn sequence_bits_do_not_depend_on_batch() {
    let decoder = Decoder::new();
    let prompts = [(3, 1), (40, 2), (1, 3), (17, 4), (16, 5)].map(|(n, salt)| tokens(n, salt));
    let starts: Vec<Caches> = prompts
        .iter()
        .map(|prompt| decoder.alone(&empty(), prompt).1)
        .collect();
    let fed = [(1, 1), (5, 2), (33, 3), (1, 4), (2, 5)].map(|(n, salt)| tokens(n, salt + 9));
    let want: Vec<_> = (0..5)
        .map(|i| decoder.alone(&starts[i], &fed[i]).0)
        .collect();
    for order in [
        vec![0, 1, 2, 3, 4],
        vec![4, 2, 0],
        vec![3, 1],
        vec![2, 3, 4, 0, 1],
    ] {
        let rows: Vec<_> = order.iter().map(|i| (&starts[*i], &fed[*i][..])).collect();
        let (got, _) = decoder.step(&rows);
        for (i, got) in order.iter().zip(got) {
            assert_eq!(got, want[*i], "sequence {i} of {order:?}");
        }
    }
    // Sequences with a common prefix give the same bits too.
    let nothing = empty();
    let rows: Vec<_> = prompts.iter().map(|p| (&nothing, &p[..])).collect();
    for (prompt, got) in prompts.iter().zip(decoder.step(&rows).0) {
        assert_eq!(got, decoder.alone(&empty(), prompt).0);
    }
}

#[test]
fn bits_do_not_depend_on_pool_size() {
    let decoder = Decoder::new();
    let work = || {
        let (one, two) = (tokens(70, 1), tokens(33, 2));
        decoder
            .step(&[(&empty(), &one[..]), (&empty(), &two[..])])
            .0
    };
    let want = work();
    for threads in [1, 2, 4] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        assert_eq!(pool.unwrap().install(work), want, "{threads} threads");
    }
}

#[test]
fn branches_equal_plain_sequences() {
    let decoder = Decoder::new();
    let prefix = tokens(12, 1);
    let branches = [tokens(7, 2), tokens(1, 3), tokens(9, 4)];
    let (mut all, mut marks, mut positions) = (prefix.clone(), vec![0u32; 12], Vec::new());
    positions.extend(0..12u32);
    for (branch, mark) in branches.iter().zip(1..) {
        all.extend(branch);
        marks.extend(branch.iter().map(|_| mark));
        positions.extend(12..12 + branch.len() as u32);
    }
    let sight = Sight {
        batch: 1,
        positions: positions.into(),
        visibility: Visibility::Branches {
            tokens: all.len(),
            branches: marks.into(),
        },
    };
    let got = decoder.whole(&all, &sight);
    let mut from = 12;
    for branch in &branches {
        let plain = [&prefix[..], &branch[..]].concat();
        let want = decoder.whole(&plain, &Sight::causal(plain.len()));
        assert_near(&got[..12], &want[..12], "the prefix");
        let own = &got[from..from + branch.len()];
        assert_near(own, &want[12..], "a branch");
        from += branch.len();
    }
}

#[test]
fn mismatched_batch_layout_is_an_error() {
    let decoder = Decoder::new();
    let x = decoder.trunk.embed(&tokens(6, 1)).unwrap();
    let mut sight = Sight::causal(5);
    assert!(decoder.trunk.forward(&x, &sight).is_err());
    sight = Sight::causal(6);
    sight.visibility = Visibility::Branches {
        branches: vec![0; 5].into(),
        tokens: 5,
    };
    assert!(decoder.trunk.forward(&x, &sight).is_err());
    sight = Sight::causal(6);
    sight.batch = 4;
    assert!(decoder.trunk.forward(&x, &sight).is_err());
    let mut cache = KvCache::new(2);
    let mut rows = [Row {
        tokens: 5,
        cache: &mut cache,
    }];
    assert!(decoder.trunk.forward_cached(&x, &mut rows).is_err());
    let mut shallow = KvCache::new(1);
    let mut rows = [Row {
        tokens: 6,
        cache: &mut shallow,
    }];
    assert!(decoder.trunk.forward_cached(&x, &mut rows).is_err());
}

/// The same property for the matrix product of all layers, over random shapes.
#[test]
fn matmul_rows_do_not_depend_on_batch() {
    let wave = |n: usize, c: usize, salt: usize| {
        let values: Vec<f32> = (0..n * c)
            .map(|i| ((i * (2 * salt + 1)) as f32 * 0.73).sin())
            .collect();
        Tensor::from_vec(values, (n, c), &Device::Cpu).unwrap()
    };
    for i in 0..40 {
        let (c_in, c_out) = (1 + i * 7919 % 1203, 1 + i * 104_729 % 511);
        let all = 4 + i * 31 % 150;
        let (x, w) = (wave(all, c_in, i), wave(c_out, c_in, i + 1));
        let want = linear(&x, &w, None).unwrap().to_vec2::<f32>().unwrap();
        for n in [1, 2, 3, 1 + i % all, all - 1] {
            let from = (i * 17) % (all - n + 1);
            let some = x.narrow(0, from, n).unwrap();
            let got = linear(&some, &w, None).unwrap().to_vec2::<f32>().unwrap();
            assert!(
                got == want[from..from + n],
                "{n} of {all} rows of {c_in} to {c_out} differ"
            );
        }
    }
}
