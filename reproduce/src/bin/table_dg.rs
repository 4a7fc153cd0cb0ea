//! The experiments of \[DG\] on the data in `../shared/data` next to the figures of the paper.
//!
//! `cargo run --release -p reproduce --bin table_dg -- [PART ..]` with the parts `table` (Table 1), `small` (Fig. 1 and stability, on S1
//! to S4), `growth` (Fig. 4: evaluations and iterations over k), `members` (Fig. 5: H and R), `strict` (stricter stops) and `coresets`
//! (the share of evaluations that D-GMM saves, over the size of the coreset); default: all. `none` is a small version of `growth`. All
//! algorithms of a run start from the same seeds, which AFK-MC2 finds on a lightweight coreset, and their evaluations count in
//! everybody's total. vc-GMM and D-GMM run on the coreset. Errors are on all rows, relative to k-means on all rows; figures are means
//! over the runs with standard errors in brackets, times are medians. Run it on an otherwise idle machine.

use coremix::prelude::*;
use coremix::{Builder, Element, Evaluations, Float, algorithms, metrics};
use ndarray::{Array1, Array2, Axis};
use reproduce::{
    Runs, as_published, beside, heading, load, mean, median, overlapping_gaussians, row, signed,
    slope, with_error,
};

type Outcome = std::result::Result<(), Box<dyn std::error::Error>>;

/// Chain length of AFK-MC2.
const CHAIN: usize = 5;
const TOLERANCE: f64 = 1e-3;
const G: usize = 5;
const H: usize = 5;
const R: usize = 5;

/// A set of Table 1 with its lines there: error, evaluations, iterations.
struct Case {
    set: &'static str,
    clusters: usize,
    coreset: usize,
    published: [[&'static str; 3]; 4],
}

/// song has a quarter of the rows of the paper, so a quarter of its 4,000 clusters and of its coreset.
const CASES: [Case; 2] = [
    Case {
        set: "kdd04bio",
        clusters: 500,
        coreset: 1 << 12,
        published: [
            ["0.0 (0.7)", "1.0x", "5.0"],
            ["14.0 (0.5)", "35.1x", "5.0"],
            ["12.0 (0.4)", "533.1x (36.5)", "11.7 (1.0)"],
            ["12.0 (1.0)", "622.1x (28.0)", "17.0 (0.7)"],
        ],
    },
    Case {
        set: "song",
        clusters: 1_000,
        coreset: 1 << 14,
        published: [
            ["0.0 (0.0)", "1.0x", "5.0"],
            ["8.0 (0.0)", "7.8x", "5.0"],
            ["8.0 (0.1)", "698.2x (0.7)", "12.0"],
            ["8.0 (0.2)", "862.1x (18.3)", "21.7 (0.4)"],
        ],
    },
];
const LARGE_SEEDS: u64 = 10;

/// The artificial sets.
const SMALL: [&str; 4] = ["s1", "s2", "s3", "s4"];
const SMALL_CLUSTERS: usize = 15;
const SMALL_CORESET: usize = 1_000;
const SMALL_H: usize = 3;
const SMALL_SEEDS: u64 = 100;

const NAMES: [&str; 4] = ["k-means", "k-means on coreset", "vc-GMM", "D-GMM"];

fn main() -> Outcome {
    let parts: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|own| own == part);
    if wanted("table") {
        println!("Published figures stand before those of this crate.");
        heading(&[
            "error, %",
            "",
            "evaluations",
            "",
            "iterations",
            "",
            "s",
            "RMSE between runs",
        ]);
        for case in &CASES {
            if let Some(x) = load::<f32, _>(case.set)? {
                large(case, &x)?;
            }
        }
    }
    if wanted("small") {
        small_heading();
        for set in SMALL {
            if let (Some(x), Some(labels)) = (load(set)?, load(&format!("{set}.labels"))?) {
                small(set, &x, &class_means(&x, &labels))?;
            }
        }
    }
    if wanted("growth") {
        let numbers: Vec<usize> = (6..=15).map(|power| 1 << power).collect();
        growth(&overlapping_gaussians((200_000, 64, 10_000)), &numbers)?;
    }
    if parts.iter().any(|part| part == "none") {
        growth(&overlapping_gaussians((2_000, 8, 50)), &[16, 32])?;
    }
    let song = &CASES[1];
    if wanted("members")
        && let Some(x) = load::<f32, _>(song.set)?
    {
        members(song, &x)?;
    }
    if wanted("strict")
        && let Some(x) = load::<f32, _>(song.set)?
    {
        strict(song, &x)?;
    }
    if wanted("coresets")
        && let Some(x) = load::<f32, _>(song.set)?
    {
        coresets(song, &x)?;
    }
    Ok(())
}

/// k-means on a coreset, of which seeds and E-steps are exchanged.
fn on_coreset<F: Float>(k: usize, coreset: usize) -> Builder<F> {
    let builder = algorithms::k_means(k).coreset(Lightweight::new(coreset));
    as_published(builder.seeder(AfkMc2::new(CHAIN)), TOLERANCE)
}

/// All algorithms from the same seeds, once for each of the numbers `1..=seeds`.
fn runs<T: Element>(
    x: &Array2<T>,
    (k, coreset, h): (usize, usize, usize),
    seeds: u64,
) -> Result<[Runs<T::Float>; 4]> {
    let mut table = NAMES.map(|_| Runs::default());
    for seed in 1..=seeds {
        // The seeds alone; the other runs draw the same coreset and the same seeds themselves.
        let mut seeded = Runs::default();
        seeded.run(x, on_coreset(k, coreset).max_iterations(0).seed(seed))?;
        let given = Given::new(seeded.means[0].view());
        let from_given = as_published(algorithms::k_means(k).seeder(given), TOLERANCE);
        let [k_means, lwcs, vc, d] = &mut table;

        k_means.run(x, from_given.seed(seed))?;
        let last = k_means.evaluations.last_mut().expect("one run at least");
        last.coreset = seeded.evaluations[0].coreset;
        last.seeding = seeded.evaluations[0].seeding;
        *k_means.seconds.last_mut().expect("one run at least") += seeded.starts[0];

        let builder = || on_coreset(k, coreset).seed(seed);
        lwcs.run(x, builder())?;
        vc.run(x, builder().e_step(Neighborhood::new(h, G)))?;
        d.run(x, builder().e_step(SimilaritySampling::new(h, R)))?;
    }
    Ok(table)
}

fn large(case: &Case, x: &Array2<f32>) -> Result<()> {
    let table = runs(x, (case.clusters, case.coreset, H), LARGE_SEEDS)?;
    let base = mean(&table[0].errors).0;
    for ((name, own), published) in NAMES.iter().zip(&table).zip(case.published) {
        let here = [
            signed(own.above(base), 2),
            own.fewer(&table[0], Evaluations::total),
            with_error(mean(&own.iterations), 1),
        ];
        let mut cells = beside(&published, here);
        cells.push(format!("{:.3}", median(&own.seconds)));
        cells.push(with_error(own.stability()?, 0));
        row(
            &format!("{}, k = {}: {name}", case.set, case.clusters),
            &cells,
        );
    }
    Ok(())
}

/// Evaluations and iterations over the number of clusters, on one coreset.
fn growth(x: &Array2<f32>, numbers: &[usize]) -> Result<()> {
    let (n, d) = x.dim();
    println!(
        "\n{n} x {d} rows of overlapping Gaussians; evaluations of searches, iterations, evaluations of one row in a search"
    );
    heading(&["k-means", "vc-GMM", "D-GMM"]);
    let mut totals: [Vec<f64>; 3] = Default::default();
    let mut each: [Vec<f64>; 3] = Default::default();
    for &k in numbers {
        let start = HierarchicalKMeansPlusPlus;
        let builders = [
            algorithms::k_means(k),
            algorithms::k_means(k).e_step(Neighborhood::new(H, G)),
            algorithms::k_means(k).e_step(SimilaritySampling::new(H, R)),
        ];
        let mut cells = Vec::new();
        for (number, builder) in builders.into_iter().enumerate() {
            let mut results = Runs::default();
            results.run(x, as_published(builder, TOLERANCE).seeder(start).seed(1))?;
            let evaluations = results.evaluations[0].search as f64;
            let iterations = results.iterations[0];
            let of_row = evaluations / (iterations + 1.0) / n as f64;
            totals[number].push(evaluations);
            each[number].push(of_row);
            cells.push(format!("{evaluations:.2e}, {iterations:.0}, {of_row:.1}"));
        }
        row(&format!("k = {k}"), &cells);
    }
    let exponents = |values: &[Vec<f64>; 3]| {
        values
            .each_ref()
            .map(|values| format!("{:.2}", slope(numbers, values)))
    };
    println!(
        "\nExponents of k: evaluations {}; of one row in a search {}",
        exponents(&totals).join(", "),
        exponents(&each).join(", ")
    );
    Ok(())
}

/// D-GMM over H and R.
fn members(case: &Case, x: &Array2<f32>) -> Result<()> {
    println!(
        "\n{}: D-GMM over H and R; evaluations in searches of the coreset, s, iterations, error over H = R = 5 in %",
        case.set
    );
    let sizes = [2, 3, 5, 10, 20, 40, 80];
    heading(&sizes.map(|r| format!("R = {r}")));
    let run = |h, r| -> Result<Runs<f32>> {
        let mut results = Runs::default();
        for seed in 1..=3 {
            let builder = on_coreset(case.clusters, case.coreset).seed(seed);
            results.run(x, builder.e_step(SimilaritySampling::new(h, r)))?;
        }
        Ok(results)
    };
    let base = mean(&run(H, R)?.errors).0;
    for h in [2, 3, 5, 10, 20] {
        let mut cells = Vec::new();
        for r in sizes {
            let results = run(h, r)?;
            let evaluations: Vec<f64> = results
                .evaluations
                .iter()
                .map(|each| each.search as f64)
                .collect();
            cells.push(format!(
                "{:.1e}, {:.2}, {:.0}, {:+.1}",
                mean(&evaluations).0,
                median(&results.seconds),
                mean(&results.iterations).0,
                results.above(base).0
            ));
        }
        row(&format!("H = {h}"), &cells);
    }
    Ok(())
}

/// Whether D-GMM would go on where the stop of the paper ends it.
fn strict(case: &Case, x: &Array2<f32>) -> Result<()> {
    println!(
        "\n{}: error over vc-GMM at 1e-3 in %, iterations, by the stop",
        case.set
    );
    heading(&["1e-3", "1e-4", "1e-5"]);
    let mut base = None;
    for (name, is_vc) in [("vc-GMM", true), ("D-GMM", false)] {
        let mut cells = Vec::new();
        for tolerance in [TOLERANCE, 0.1 * TOLERANCE, 0.01 * TOLERANCE] {
            let mut results = Runs::<f32>::default();
            for seed in 1..=5 {
                let builder = on_coreset(case.clusters, case.coreset).seed(seed);
                let builder = if is_vc {
                    builder.e_step(Neighborhood::new(H, G))
                } else {
                    builder.e_step(SimilaritySampling::new(H, R))
                };
                results.run(x, builder.tolerance(tolerance))?;
            }
            let base = *base.get_or_insert(mean(&results.errors).0);
            let iterations = mean(&results.iterations).0;
            cells.push(format!(
                "{}, {iterations:.0}",
                signed(results.above(base), 2)
            ));
        }
        row(name, &cells);
    }
    Ok(())
}

/// The share of the evaluations of vc-GMM that D-GMM saves.
fn coresets(case: &Case, x: &Array2<f32>) -> Result<()> {
    println!(
        "\n{}: evaluations that D-GMM saves of those of vc-GMM; on ImageNet the paper has 22, 31, 40, 44 and 49 %",
        case.set
    );
    let sizes = [1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16];
    heading(&sizes.map(|size| format!("N' = {size}")));
    let mut saved = Vec::new();
    let mut more = Vec::new();
    for size in sizes {
        let mut both = [Runs::<f32>::default(), Runs::default()];
        for seed in 1..=5 {
            let builder = || on_coreset(case.clusters, size).seed(seed);
            both[0].run(x, builder().e_step(Neighborhood::new(H, G)))?;
            both[1].run(x, builder().e_step(SimilaritySampling::new(H, R)))?;
        }
        let [vc, d] = both.each_ref().map(|own| {
            let searches = own.evaluations.iter().map(|each| each.search as f64);
            searches.sum::<f64>()
        });
        saved.push(format!("{:.0} %", 100.0 * (1.0 - d / vc)));
        let [vc, d] = both
            .each_ref()
            .map(|own| format!("{:.1}", mean(&own.iterations).0));
        more.push(format!("{d}, {vc}"));
    }
    row("evaluations saved", &saved);
    row("iterations of D-GMM, of vc-GMM", &more);
    Ok(())
}

fn small_heading() {
    println!(
        "\nM = {SMALL_CLUSTERS}, N' = {SMALL_CORESET}, H = C' = {SMALL_H}, {SMALL_SEEDS} runs; root mean square distance of matched centres"
    );
    heading(&[
        "to the class means: k-means",
        "vc-GMM",
        "D-GMM",
        "D-GMM less vc-GMM, paired",
        "between runs: k-means",
        "vc-GMM",
        "D-GMM",
    ]);
}

fn small(set: &str, x: &Array2<f64>, truth: &Array2<f64>) -> Result<()> {
    let [k_means, _, vc, d] = runs(x, (SMALL_CLUSTERS, SMALL_CORESET, SMALL_H), SMALL_SEEDS)?;
    let to_truth = |own: &Runs<f64>| -> Result<Vec<f64>> {
        let rmse = |means: &Array2<f64>| metrics::matched_rmse(means.view(), truth.view());
        own.means.iter().map(rmse).collect()
    };
    // Each run has the same seeds, so the paired differences say more than the means.
    let pairs = to_truth(&d)?.into_iter().zip(to_truth(&vc)?);
    let gains: Vec<f64> = pairs.map(|(d, vc)| d - vc).collect();
    let mut cells = Vec::new();
    for own in [&k_means, &vc, &d] {
        cells.push(with_error(mean(&to_truth(own)?), 0));
    }
    cells.push(signed(mean(&gains), 0));
    for own in [&k_means, &vc, &d] {
        cells.push(with_error(own.stability()?, 0));
    }
    row(set, &cells);
    Ok(())
}

/// The mean of each class, in the order of the labels.
fn class_means(x: &Array2<f64>, labels: &Array1<u32>) -> Array2<f64> {
    let mut classes: Vec<u32> = labels.to_vec();
    classes.sort_unstable();
    classes.dedup();
    let mean = |class: u32| -> Array1<f64> {
        let rows: Vec<usize> = (0..labels.len()).filter(|&n| labels[n] == class).collect();
        let members = x.select(Axis(0), &rows);
        members.mean_axis(Axis(0)).expect("a class has members")
    };
    let means: Vec<Array1<f64>> = classes.into_iter().map(mean).collect();
    let views: Vec<_> = means.iter().map(|mean| mean.view()).collect();
    ndarray::stack(Axis(0), &views).expect("rows of one length")
}
