//! The sums and lists of many rows beside naive ones.

use super::*;
use crate::base::rng::Rng;
use crate::kernels::stride;

/// All scores of a row, naively.
fn naive(row: &[f64], mu: &[f64], stride: usize) -> Vec<f64> {
    let squared = |c: &[f64]| row.iter().zip(c).map(|(a, b)| (a - b).powi(2)).sum();
    mu.chunks(stride).map(squared).collect()
}

/// The lowest scores, what is listed, and the sum over all, beside naive ones: whole parts of panels and not, many rows
/// and one, expanded and direct.
#[test]
fn what_is_listed_and_what_is_summed_are_all() {
    let mut rng = Rng::from_seed(3);
    for (n, d, k) in [
        (1, 1, 1),
        (5, 3, 16),
        (13, 20, 100),
        (40, 8, 700),
        (9, 600, 70),
    ] {
        let s = stride(d);
        let mut padded = |n: usize| -> Vec<f64> {
            let place = |i| if i % s < d { rng.normal() } else { 0.0 };
            (0..n * s).map(place).collect()
        };
        let (rows, mu) = (padded(n), padded(k));
        let norms: Vec<f64> = mu
            .chunks(s)
            .map(|c| c.iter().map(|x| x * x).sum())
            .collect();
        let panels = Panels::pack(&mu, s, d, &norms);
        let beta = 3.0;
        for directly in [false, true] {
            let asked = Asked {
                beta,
                most: k,
                reach: &|_, squared| (f64::min(0.1 * squared, 9.0), 40.0 / beta),
                directly,
            };
            let mut all = Vec::new();
            with_all_vectors!({
                let group = Group {
                    rows: rows.clone(),
                    scores: Vec::new(),
                };
                all.push((Vec::new(), Vec::new(), group));
                let (shares, listed, group) = all.last_mut().unwrap();
                OfRows {
                    about: None,
                    panels: &panels,
                    asked: &asked,
                    shares,
                    listed,
                    group,
                }
            });
            for (mut shares, listed, _) in all {
                assert_eq!(shares.len(), n);
                for (row, shares) in rows.chunks(s).zip(&mut shares) {
                    let scores = naive(row, &mu, s);
                    let least = scores.iter().fold(f64::INFINITY, |a, b| a.min(*b));
                    let low = shares.low + shares.norm;
                    assert!(
                        (low - least).abs() <= 1e-12 * (1.0 + shares.norm),
                        "{low} {least}"
                    );
                    let mut ids = Vec::new();
                    assert!(shares.listed(beta, &listed, &mut ids));
                    ids.sort_unstable();
                    let most = least + f64::min(0.1 * least, 9.0) + 1e-9;
                    let near = |c: &u32| scores[*c as usize] <= most;
                    let expected: Vec<u32> = (0..k as u32).filter(near).collect();
                    assert_eq!(ids, expected);
                    let sum: f64 = (0..k as u32)
                        .filter(|c| !ids.contains(c))
                        .map(|c| (-beta * (scores[c as usize] - least)).exp())
                        .sum();
                    let off = (shares.others - sum).abs();
                    assert!(off <= 1e-11 * (1.0 + sum), "{} {sum}", shares.others);
                }
            }
        }
    }
}

/// A row with more components near than may be listed is not known.
#[test]
fn a_row_with_too_many_near_is_left() {
    let mu = vec![1.0f32; 4 * 40];
    let panels = Panels::pack(&mu, 4, 4, &[4.0; 40]);
    for (most, known) in [(39, false), (40, true)] {
        let asked = Asked {
            beta: 1.0,
            most,
            reach: &|_, _| (1e-3, 30.0),
            directly: false,
        };
        let (mut shares, mut listed, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        let rows = mu.chunks(4).take(3);
        let found = (&mut shares, &mut listed);
        of_rows(rows, None, &panels, &asked, found, &mut Group::default());
        for shares in &mut shares {
            assert_eq!(shares.listed(1.0, &listed, &mut ids), known);
            assert!(!known || ids.len() == 40 && shares.others < 1e-30);
        }
    }
}

#[test]
fn what_is_felt_is_at_least_the_logarithm() {
    for (count, error, enough) in [(10.0, 1e-3, 1e-6), (1e6, 0.4, 1e-3), (3.0, 7.0, 1e-6)] {
        let exact = (count * f64::exp_m1(error) / enough).ln();
        let felt = felt_within(count, error, enough);
        assert!(felt >= exact && felt <= exact + 1.2, "{felt} {exact}");
    }
    assert_eq!(felt_within(10.0, 1e-9, 1e-6), 0.0);
    assert_eq!(felt_within(10.0, 1e9, 1e-6), f64::INFINITY);
}
