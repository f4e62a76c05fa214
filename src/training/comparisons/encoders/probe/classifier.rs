//! Linear classifier on frozen features: multinomial logistic regression with weight decay,
//! trained with full-batch steps. Deterministic, because weights start at zero.

use acem3_experts::train::{Hits, Optimizer, OptimizerConfig, Schedule, ShardLoss, Trainer};
use anyhow::Result;
use candle::{DType, Device, Tensor, Var};

/// Optimizer steps.
const STEPS: u64 = 200;
/// Peak learning rate.
const LEARNING_RATE: f64 = 0.05;

/// Fits a classifier with `n` classes on the labelled rows of `train` and predicts the classes of
/// `test`.
///
/// `classes` contains the class of each row of `train`, or `None` if it is unlabelled.
pub(super) fn classify(
    train: &[Vec<f32>],
    classes: &[Option<usize>],
    n: usize,
    test: &[Vec<f32>],
) -> Result<Vec<usize>> {
    let width = train.first().map_or(0, Vec::len);
    let labelled: Vec<(&Vec<f32>, usize)> =
        train.iter().zip(classes).filter_map(|(row, class)| Some((row, (*class)?))).collect();
    if labelled.is_empty() || width == 0 {
        return Ok(vec![0; test.len()]);
    }
    let device = Device::Cpu;
    let weight = Var::zeros((n, width), DType::F32, &device)?;
    let bias = Var::zeros(n, DType::F32, &device)?;
    let logits = |x: &Tensor| x.matmul(&weight.t()?)?.broadcast_add(&bias);
    let x = matrix(&labelled.iter().map(|(row, _)| *row).collect::<Vec<_>>())?;
    let targets: Vec<u32> = labelled.iter().map(|(_, class)| *class as u32).collect();
    let optimizer = Optimizer::new(
        vec![("weight".to_owned(), weight.clone()), ("bias".to_owned(), bias.clone())],
        OptimizerConfig { weight_decay: 0.1, ..OptimizerConfig::default() },
    );
    let schedule = Schedule { peak: LEARNING_RATE, warmup: 10, steps: STEPS, floor: 0.0 };
    let mut trainer = Trainer::new(optimizer, schedule, f64::INFINITY);
    for _ in 0..STEPS {
        trainer.step(&[()], |()| {
            let target = Tensor::from_vec(targets.clone(), targets.len(), &device)?;
            let log_probabilities = candle_nn::ops::log_softmax(&logits(&x)?, 1)?;
            let target_log_probabilities = log_probabilities.gather(&target.unsqueeze(1)?, 1)?;
            ShardLoss::new(
                target_log_probabilities.sum_all()?.neg()?,
                targets.len() as f64,
                Hits::default(),
                0,
            )
        })?;
    }
    if test.is_empty() {
        return Ok(Vec::new());
    }
    let test = matrix(&test.iter().collect::<Vec<_>>())?;
    let predictions = logits(&test)?.argmax(1)?.to_vec1::<u32>()?;
    Ok(predictions.into_iter().map(|class| class as usize).collect())
}

/// Stacks rows into a matrix.
///
/// # Shapes
/// `n` rows of length `c` → (n, c).
fn matrix(rows: &[&Vec<f32>]) -> candle::Result<Tensor> {
    let width = rows.first().map_or(0, |row| row.len());
    let values: Vec<f32> = rows.iter().flat_map(|row| row.iter().copied()).collect();
    Tensor::from_vec(values, (rows.len(), width), &Device::Cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separable_classes_are_classified() {
        let row = |i: usize| vec![(i % 3) as f32 - 1.0, (i % 5) as f32 * 0.1];
        let train: Vec<Vec<f32>> = (0..30).map(row).collect();
        let mut classes: Vec<Option<usize>> = (0..30).map(|i| Some(i % 3)).collect();
        classes[4] = None;
        let test: Vec<Vec<f32>> = (30..39).map(row).collect();
        let predictions = classify(&train, &classes, 3, &test).unwrap();
        assert_eq!(predictions, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
        assert_eq!(classify(&train, &[None; 30], 3, &test).unwrap(), [0; 9]);
    }
}
