//! The laws of component families.

use super::trial::{Trial, rises};
use super::{LOOKED_AT, law, tolerance};
use crate::base::error::{Error, Result};
use crate::base::float::Float;
use crate::data::{Data, Rows};
use crate::e_step::Exhaustive;
use crate::m_step::{MStep, Moments};
use crate::model::Mixture;
use crate::model::block::Block;
use crate::model::posterior;
use crate::model::search::{self, Exact};
use std::ops::Range;

/// Component families: the free energy never falls, neither with supports of all components nor with those of two or one;
/// it is at most the log-likelihood, and equal to it for supports of all; any number of threads gives the same bits, and so
/// does a fit that goes on from a [checkpoint](crate::Checkpoint), if the family can be saved;
/// responsibilities sum to 1; fast costs are the [direct ones](crate::costs::Cost::some) to within their margin; statistics of
/// disjoint blocks add up.
///
/// # Errors
/// [`Error::Stage`](crate::Error::Stage) with the law; what the fit returns.
pub fn family<F, M>(m_step: &M, data: &dyn Data<F>, k: usize) -> Result<()>
where
    F: Float,
    M: MStep<F> + Clone,
{
    for width in [1, 2, k] {
        let e_step = &Exhaustive::truncated(width);
        let trial = Trial {
            e_step,
            m_step,
            data,
            k,
        };
        for seed in 0..3 {
            let fit = trial.fit(15, seed)?;
            let case = format!("supports of {width}");
            rises::<M, F>(&fit.report.free_energies, &case)?;
            if fit.model.prior_terms() != 0.0 {
                // The free energy bounds the evidence.
                continue;
            }
            let last = fit.report.free_energies.last().copied();
            let energy = last.unwrap_or(0.0);
            let likelihood = fit.model.log_likelihood(data)?;
            let slack = tolerance::<F>() * energy.abs().max(data.summary().total_weight);
            let what =
                || format!("{case}: the free energy is {energy}, the log-likelihood {likelihood}");
            law::<M>(energy <= likelihood + slack, what)?;
            let bounds = width < k || fit.model.plain().is_some();
            law::<M>(bounds || energy >= likelihood - slack, what)?;
        }
    }
    let trial = Trial {
        e_step: &Exhaustive::all(),
        m_step,
        data,
        k,
    };
    trial.repeats::<M>()?;
    let model = trial.fit(3, 0)?.model;
    for (row, shares) in model.responsibilities(data)?.outer_iter().enumerate() {
        let sum: f64 = shares.iter().map(|q| q.to_f64()).sum();
        let near = (sum - 1.0).abs() <= 4.0 * k as f64 * F::EPSILON;
        law::<M>(near, || {
            format!("the responsibilities of row {row} sum to {sum}")
        })?;
    }
    costs_agree::<M, F>(&model, data)?;
    statistics_add_up(m_step, &model, data)
}

fn costs_agree<S, F: Float>(model: &dyn Mixture<F>, data: &dyn Data<F>) -> Result<()> {
    /// Components this many nats behind have no share.
    const REACH: f64 = 60.0;

    let k = model.components();
    let beta = model.log_joint().beta;
    let mut rows = Rows::default();
    data.load(0..data.len().min(LOOKED_AT), model.frame(), &mut rows)?;
    let ids: Vec<u32> = (0..k as u32).collect();
    let mut fast = Vec::new();
    let mut direct = Vec::new();
    let cost = model.cost();
    cost.all(&rows, &mut fast);
    let n = rows.len();
    let count = fast.len();
    law::<S>(count == n * k, || {
        format!("{count} fast costs of {n} rows under {k} components")
    })?;
    for (i, fast) in fast.chunks_exact(k).enumerate() {
        cost.some(&rows, i, &ids, &mut direct);
        let direct: Vec<f64> = direct.iter().map(|cost| cost.to_f64()).collect();
        let margin = cost.margin(&rows, i, F::INFINITY).to_f64();
        let best = direct.iter().copied().fold(f64::INFINITY, f64::min);
        for ((c, cost), fast) in direct.iter().enumerate().zip(fast) {
            // Where the best are computed directly and the margin is 0, others have the digits of their type: a form in d
            // columns is off by 2 (d + 8) d times the root of the variance inflation, of itself, and by 2 d times the
            // deviations between the origin and the mean, of its root. Forms are computed in this type up to an inflation
            // of 64 and 100 deviations. The rest of a cost is less than 20 nats for each column: pivots are at least
            // 1e-8 of the variance of their column, where columns are in like units.
            let width = rows.known(i) as f64;
            let form = cost.abs() + 20.0 * (width + 1.0) / beta;
            let of_mean = 200.0 * width * (form / (2.0 * beta)).sqrt();
            let rounding = F::EPSILON * (16.0 * (width + 8.0) * width * form + of_mean);
            let is_best = *cost <= best;
            let within = if is_best {
                margin
            } else {
                margin.max(rounding)
            };
            let far = beta * (cost - best) > REACH;
            let near = (fast.to_f64() - cost).abs() <= within;
            law::<S>(far || near, || {
                format!(
                    "row {i}, component {c}: the fast cost {fast} is farther from the direct one, {cost}, than the margin {margin}"
                )
            })?;
        }
    }
    Ok(())
}

fn statistics_add_up<F, M>(m_step: &M, model: &M::Model, data: &dyn Data<F>) -> Result<()>
where
    F: Float,
    M: MStep<F>,
{
    let n = data.len().min(LOOKED_AT);
    let k = model.components();
    let log_joint = model.log_joint();
    let add = |rows: Range<usize>, sums: &mut Moments| -> Result<()> {
        let mut loaded = Rows::default();
        let mut block = Block::new(k, k);
        data.load(rows, model.frame(), &mut loaded)?;
        block.reset(loaded.len(), &[]);
        let scratch = &mut Exact::default();
        search::all(
            model.cost(),
            log_joint.beta,
            &loaded,
            &mut block,
            scratch,
            &mut |_| {},
        );
        posterior::normalise(&loaded, &mut block, log_joint);
        m_step.accumulate(&loaded, &block, model, sums);
        Ok(())
    };
    let updated = |sums| {
        let mut model = model.clone();
        m_step.update(sums, &mut model, false, None)?;
        Ok::<_, Error>(model)
    };
    let mut whole = m_step.statistics(model);
    add(0..n, &mut whole)?;
    let whole = updated(whole)?;
    let mut parts: Vec<Moments> = (0..3).map(|_| m_step.statistics(model)).collect();
    for (part, sums) in parts.iter_mut().enumerate() {
        add(part * n / 3..(part + 1) * n / 3, sums)?;
    }
    let merged = updated(Moments::merge(parts.iter_mut()))?;
    let other = differ::<F, _>(&whole, &merged);
    law::<M>(other.is_none(), || {
        let what = other.unwrap_or_default();
        format!("statistics of three blocks give other {what} than those of all rows")
    })
}

/// The quantity in which two models differ by more than rounding.
fn differ<F: Float, M: Mixture<F>>(a: &M, b: &M) -> Option<&'static str> {
    let numbers = |model: &M| -> [Vec<f64>; 3] {
        let centres = model.centres();
        let centres = (0..centres.len()).flat_map(|c| centres.row(c));
        let variances = model.variances().into_iter().collect();
        let centres = centres.map(|z| z.to_f64()).collect();
        [centres, variances, model.proportions().to_vec()]
    };
    let a = numbers(a);
    let b = numbers(b);
    ["means", "variances", "proportions"]
        .into_iter()
        .zip(a.iter().zip(&b))
        .find(|(what, (a, b))| {
            let unit = |a: f64| if *what == "variances" { a.abs() } else { 1.0 };
            let near = |a: f64, b: f64| a == b || (a - b).abs() <= tolerance::<F>() * unit(a);
            a.len() != b.len() || !a.iter().zip(*b).all(|(a, b)| near(*a, *b))
        })
        .map(|(what, _)| what)
}
