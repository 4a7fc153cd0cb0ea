//! The experiments of \[VC\] on the data in `../shared/data` next to the figures of the paper.
//!
//! `cargo run --release -p reproduce --bin table_vc -- [PART ..]` with the parts `table` (Table 1), `warm` (Supplement F: searches
//! before the first M-step; and other starts), `strict` (a stop at 1e-5), `nmi` (Fig. S.3), `kinds` (other covariances) and `large` (a run as in
//! Table 2: 2.5 GB, 10 minutes); default: all but `large`. `none` is a small version of `large`. Errors are relative to k-means on all
//! rows, figures are means over five seeds with standard errors in brackets, times are medians. Run it on an otherwise idle machine.

use coremix::prelude::*;
use coremix::stage::Rng;
use coremix::{Builder, Element, Evaluations, algorithms, metrics};
use ndarray::{Array2, Axis};
use ndarray_npy::ReadableElement;
use rayon::prelude::*;
use reproduce::{
    Runs, TOLERANCE, as_published, beside, heading, load, mean, median, memory, row, signed, slope,
    with_error,
};
use std::ops::RangeInclusive;

type Outcome = std::result::Result<(), Box<dyn std::error::Error>>;

const SEEDS: RangeInclusive<u64> = 1..=5;

/// Settings of a set, and its lines of Table 1: error, time, evaluations, iterations, and the share of coreset and seeds.
struct Case {
    set: &'static str,
    clusters: usize,
    coreset: usize,
    g: usize,
    random: usize,
    chain: usize,
    /// One for each of k-means++, var-GMM-S, LWCS and vc-GMM; none where the paper has another set.
    published: [[&'static str; 5]; 4],
    /// Errors of the authors' C++ for var-GMM-S and vc-GMM in percent of scikit-learn's, whose error is the first number.
    authors: (f64, [&'static str; 2]),
}

const NAMES: [&str; 4] = ["k-means++", "var-GMM-S", "LWCS", "vc-GMM"];

const CASES: [Case; 4] = [
    Case {
        set: "kdd04bio",
        clusters: 500,
        coreset: 1 << 13,
        g: 5,
        random: 0,
        chain: 2,
        published: [
            ["0.0 (0.04)", "1.0x", "1.0x", "13.0", "22 %"],
            ["0.94 (0.07)", "6.4x", "23.4x", "17.0", "1 %"],
            ["11.73 (0.18)", "27.8x", "24.2x", "10.2", "3 %"],
            ["10.81 (0.08)", "91.5x", "361.0x", "17.9", "12 %"],
        ],
        authors: (1.116946e11, ["+2.4 (0.3)", "+12.3 (0.3)"]),
    },
    Case {
        set: "cod_rna",
        clusters: 500,
        coreset: 1 << 15,
        g: 3,
        random: 1,
        chain: 20,
        published: [
            ["0.0 (0.22)", "1.0x", "1.0x", "18.0", "15 %"],
            ["-1.59 (0.23)", "1.6x", "19.2x", "72.3", "under 1 %"],
            ["11.24 (0.60)", "21.2x", "19.8x", "14.2", "3 %"],
            ["7.28 (0.28)", "33.3x", "329.4x", "47.8", "5 %"],
        ],
        authors: (1.157249e6, ["+10.2 (0.5)", "+16.8 (0.6)"]),
    },
    // A quarter of the rows of the paper, so a quarter of its 4,000 clusters and of its coreset.
    Case {
        set: "song",
        clusters: 1_000,
        coreset: 1 << 14,
        g: 5,
        random: 0,
        chain: 2,
        published: [
            ["0.0 (0.01)", "1.0x", "1.0x", "11.0", "19 %"],
            ["0.99 (0.02)", "24.9x", "79.1x", "26.2", "1 %"],
            ["10.42 (0.18)", "10.5x", "10.3x", "9.1", "1 %"],
            ["9.23 (0.07)", "166.6x", "513.9x", "22.3", "11 %"],
        ],
        authors: (2.495159e11, ["+2.3 (0.1)", "+10.4 (0.1)"]),
    },
    Case {
        set: "mnist_u8",
        clusters: 500,
        coreset: 1 << 13,
        g: 5,
        random: 0,
        chain: 2,
        published: [[""; 5]; 4],
        authors: (1.020308e11, ["+0.7 (0.1)", "+10.1 (0.1)"]),
    },
];

impl Case {
    fn search(&self) -> Neighborhood {
        Neighborhood::new(self.g, self.g).random(self.random)
    }

    fn k_means(&self) -> Builder<f32> {
        algorithms::k_means(self.clusters)
    }

    fn lwcs(&self) -> Builder<f32> {
        algorithms::lwcs_k_means(self.clusters, self.coreset).seeder(AfkMc2::new(self.chain))
    }

    fn var(&self, search: Neighborhood) -> Builder<f32> {
        let builder = algorithms::var_gmm_s(self.clusters, self.g, self.g);
        builder.seeder(AfkMc2::new(self.chain)).e_step(search)
    }

    fn vc(&self, search: Neighborhood) -> Builder<f32> {
        let builder = algorithms::vc_gmm(self.clusters, self.coreset, self.g, self.g);
        builder.seeder(AfkMc2::new(self.chain)).e_step(search)
    }
}

/// Runs of an algorithm with every seed.
fn runs<T>(x: &Array2<T>, tolerance: f64, builder: Builder<f32>) -> Result<Runs<f32>>
where
    T: Element<Float = f32>,
{
    let mut runs = Runs::default();
    for seed in SEEDS {
        runs.run(x, as_published(builder.clone(), tolerance).seed(seed))?;
    }
    Ok(runs)
}

fn main() -> Outcome {
    let parts: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|own| own == part);
    if wanted("table") {
        println!("Published figures stand before those of this crate.");
        heading(&[
            "error, %",
            "",
            "time",
            "",
            "evaluations",
            "",
            "iterations",
            "",
            "start",
            "",
            "s",
            "authors' C++, %",
            "this crate, %",
        ]);
        for case in &CASES {
            if case.set == "mnist_u8" {
                with_rows::<u8>(case.set, |x| table(case, x))?;
            } else {
                with_rows::<f32>(case.set, |x| table(case, x))?;
            }
        }
    }
    let [kdd, rna, song, _] = &CASES;
    if wanted("warm") {
        with_rows(rna.set, |x| initial_searches(rna, x))?;
        with_rows(kdd.set, |x| initial_searches(kdd, x))?;
        with_rows(rna.set, |x| starts(rna, x))?;
    }
    if wanted("strict") {
        with_rows(kdd.set, |x| strict(kdd, x))?;
    }
    if wanted("nmi") {
        with_rows(kdd.set, |x| nmi(kdd, x))?;
    }
    if wanted("kinds") {
        with_rows(kdd.set, |x| kinds(kdd, x))?;
        with_rows(song.set, |x| kinds(song, x))?;
    }
    if parts.iter().any(|part| part == "large") {
        large((10_000_000, 128), 1_000_000, &[8_192, 16_384, 32_768])?;
    }
    if parts.iter().any(|part| part == "none") {
        large((4_000, 8), 1_000, &[16, 32])?;
    }
    Ok(())
}

fn with_rows<T: ReadableElement>(
    set: &str,
    print: impl FnOnce(&Array2<T>) -> Result<()>,
) -> Outcome {
    if let Some(x) = load(set)? {
        print(&x)?;
    }
    Ok(())
}

fn table<T>(case: &Case, x: &Array2<T>) -> Result<()>
where
    T: Element<Float = f32>,
{
    let k_means = runs(x, TOLERANCE, case.k_means())?;
    let base = mean(&k_means.errors).0;
    let (reference, [var, vc]) = case.authors;
    let algorithms = [
        (None, ""),
        (Some(case.var(case.search())), var),
        (Some(case.lwcs()), ""),
        (Some(case.vc(case.search())), vc),
    ];
    let lines = NAMES.iter().zip(case.published).zip(algorithms);
    for ((name, published), (builder, authors)) in lines {
        let fitted = builder
            .map(|builder| runs(x, TOLERANCE, builder))
            .transpose()?;
        let results = fitted.as_ref().unwrap_or(&k_means);
        let here = [
            signed(results.above(base), 2),
            results.faster(&k_means),
            results.fewer(&k_means, Evaluations::total),
            with_error(mean(&results.iterations), 1),
            results.start(),
        ];
        let mut cells = beside(&published, here);
        cells.push(format!("{:.3}", median(&results.seconds)));
        cells.push(authors.to_owned());
        cells.push(signed(results.above(reference), 1));
        row(
            &format!("{}, k = {}: {name}", case.set, case.clusters),
            &cells,
        );
    }
    Ok(())
}

/// Searches before the first M-step.
fn initial_searches(case: &Case, x: &Array2<f32>) -> Result<()> {
    println!(
        "\n{}: searches before the first M-step; error over k-means++ in %, iterations",
        case.set
    );
    let base = mean(&runs(x, TOLERANCE, case.k_means())?.errors).0;
    let searches = [0, 2, 4];
    heading(&searches.map(|n| n.to_string()));
    let other = if case.g == 3 { 5 } else { 3 };
    for (g, random) in [(case.g, case.random), (other, 0)] {
        let search = |n| Neighborhood::new(g, g).random(random).initial_searches(n);
        for (name, is_vc) in [("var-GMM-S", false), ("vc-GMM", true)] {
            let mut cells = Vec::new();
            for n in searches {
                let builder = if is_vc {
                    case.vc(search(n))
                } else {
                    case.var(search(n))
                };
                let results = runs(x, TOLERANCE, builder)?;
                let iterations = mean(&results.iterations).0;
                cells.push(format!(
                    "{}, {iterations:.0}",
                    signed(results.above(base), 2)
                ));
            }
            row(&format!("{name}, G = {g} + {random}"), &cells);
        }
    }
    Ok(())
}

/// The error of var-GMM-S with other seeds, other starts of supports, another stop.
fn starts(case: &Case, x: &Array2<f32>) -> Result<()> {
    println!("\n{}: what moves the error of var-GMM-S", case.set);
    heading(&["error over k-means++, %", "iterations"]);
    let base = mean(&runs(x, TOLERANCE, case.k_means())?.errors).0;
    let var = || case.var(case.search());
    let given_supports = case.search().from_seeds(true);
    let seeds = AfkMc2::new(case.chain);
    for (name, tolerance, builder) in [
        ("as published", TOLERANCE, var()),
        ("chains of 200", TOLERANCE, var().seeder(AfkMc2::new(200))),
        (
            "seeds by k-means++",
            TOLERANCE,
            var().seeder(KMeansPlusPlus::default()),
        ),
        (
            "supports that start at the seeds",
            TOLERANCE,
            case.var(given_supports),
        ),
        ("stop at 1e-6", 0.01 * TOLERANCE, var()),
        (
            "k-means from the seeds of var-GMM-S",
            TOLERANCE,
            case.k_means().seeder(seeds),
        ),
    ] {
        let results = runs(x, tolerance, builder)?;
        let cells = [
            signed(results.above(base), 2),
            with_error(mean(&results.iterations), 1),
        ];
        row(name, &cells);
    }
    Ok(())
}

/// A stricter stop.
fn strict(case: &Case, x: &Array2<f32>) -> Result<()> {
    println!(
        "\n{}: a stricter stop; error over that at 1e-4 in %, iterations",
        case.set
    );
    heading(&["1e-4", "1e-5"]);
    for (name, builder) in [
        ("k-means++", case.k_means()),
        ("var-GMM-S", case.var(case.search())),
        ("vc-GMM", case.vc(case.search())),
    ] {
        let usual = runs(x, TOLERANCE, builder.clone())?;
        let base = mean(&usual.errors).0;
        let cells = [usual, runs(x, 0.1 * TOLERANCE, builder)?].map(|own| {
            let iterations = mean(&own.iterations).0;
            format!("{}, {iterations:.1}", signed(own.above(base), 2))
        });
        row(name, &cells);
    }
    Ok(())
}

/// How near partitions on coresets are to those of k-means on all rows.
fn nmi(case: &Case, x: &Array2<f32>) -> Result<()> {
    println!(
        "\n{}: NMI with the partition of k-means++, of the same seed of the random numbers",
        case.set
    );
    let data = Dense::new(x.view())?;
    let labels = |builder: Builder<f32>, seed: u64| {
        let fit = as_published(builder, TOLERANCE)
            .seed(seed)
            .build()?
            .fit(&data)?;
        fit.model.predict(&data)
    };
    let whole = SEEDS.map(|seed| labels(case.k_means(), seed));
    let whole = whole.collect::<Result<Vec<_>>>()?;
    let sizes = [1_024, 2_048, 4_096, 8_192, 16_384, 32_768];
    heading(&sizes.map(|size| format!("N' = {size}")));
    for name in ["LWCS", "vc-GMM"] {
        let mut cells = Vec::new();
        for coreset in sizes {
            let of_size = Case { coreset, ..*case };
            let mut agreement = Vec::new();
            for (seed, whole) in SEEDS.zip(&whole) {
                let builder = match name {
                    "LWCS" => of_size.lwcs(),
                    _ => of_size.vc(case.search()),
                };
                agreement.push(metrics::nmi(labels(builder, seed)?.view(), whole.view())?);
            }
            cells.push(with_error(mean(&agreement), 4));
        }
        row(name, &cells);
    }
    Ok(())
}

/// Other covariances: log-likelihoods of rows that were held out.
fn kinds(case: &Case, x: &Array2<f32>) -> Result<()> {
    let (n, d) = x.dim();
    println!(
        "\n{}: log-likelihood of each row of a held-out fifth, columns of deviation 1; seconds, iterations",
        case.set
    );
    let held_out: Vec<usize> = (0..n).step_by(5).collect();
    let fitted: Vec<usize> = (0..n).filter(|row| row % 5 != 0).collect();
    let held_out = x.select(Axis(0), &held_out);
    let fitted = x.select(Axis(0), &fitted);
    let held_out = Dense::new(held_out.view())?;
    let fitted = Dense::new(fitted.view())?;
    heading(&["nats", "s", "iterations"]);
    let vc = |kind| case.vc(case.search()).covariance(kind).prior(Prior::weak());
    for (name, builder) in [
        ("k-means++, one variance", case.k_means()),
        ("vc-GMM, one variance", case.vc(case.search())),
        ("vc-GMM, a variance each", vc(Covariance::Spherical)),
        (
            "vc-GMM, a variance for each column",
            vc(Covariance::Diagonal),
        ),
        ("vc-GMM, 3 factors", vc(Covariance::Factors(3))),
    ] {
        let mut nats = Vec::new();
        let mut seconds = Vec::new();
        let mut iterations = Vec::new();
        for seed in SEEDS.take(3) {
            let builder = as_published(builder.clone(), TOLERANCE).standardise(true);
            let fit = builder.seed(seed).build()?.fit(&fitted)?;
            seconds.push(fit.report.timings.total().as_secs_f64());
            iterations.push(fit.report.iterations as f64);
            nats.push(fit.model.log_likelihood(&held_out)? / held_out.len() as f64);
        }
        let cells = [
            with_error(mean(&nats), 2),
            format!("{:.2}", median(&seconds)),
            format!("{:.0}", mean(&iterations).0),
        ];
        row(&format!("{name}, d = {d}"), &cells);
    }
    Ok(())
}

/// vc-GMM with thousands of clusters on a large coreset of bytes, as in Table 2.
fn large((n, d): (usize, usize), coreset: usize, numbers: &[usize]) -> Outcome {
    let x = bytes((n, d));
    let test = bytes((n / 100, d));
    println!(
        "\n{n} x {d} bytes around 20,000 centres, N' = {coreset}, C' = 5, G = 5 + 1, m = 2, one run"
    );
    heading(&[
        "seeds, s",
        "EM, s",
        "iterations",
        "peak over the rows, MiB",
        "error, held out",
    ]);
    let data = Dense::new(x.view())?;
    let test = Dense::new(test.view())?;
    let rows = memory("VmRSS:")?;
    let mut seeding = Vec::new();
    let mut em = Vec::new();
    for &k in numbers {
        let search = Neighborhood::new(5, 5).random(1);
        let builder = algorithms::vc_gmm(k, coreset, 5, 5).e_step(search);
        let builder = builder.seeder(AfkMc2::new(2)).seed(1);
        let fit = as_published(builder, TOLERANCE).build()?.fit(&data)?;
        seeding.push(fit.report.timings.seeding.as_secs_f64());
        em.push((fit.report.timings.search + fit.report.timings.update).as_secs_f64());
        let cells = [
            format!("{:.1}", seeding[seeding.len() - 1]),
            format!("{:.1}", em[em.len() - 1]),
            format!("{}", fit.report.iterations),
            format!("{:.0}", (memory("VmHWM:")? - rows) / 1024.0),
            format!("{:.4e}", fit.model.quantization_error(&test)?),
        ];
        row(&format!("k = {k}"), &cells);
    }
    let exponents = |seconds: &[f64]| {
        let pairs = seconds.windows(2).zip(numbers.windows(2));
        let each = pairs.map(|(seconds, k)| format!("{:.2}", slope(k, seconds)));
        each.collect::<Vec<_>>().join(" and ")
    };
    println!(
        "\nExponents of k from one line to the next: seeds {}, EM {}",
        exponents(&seeding),
        exponents(&em)
    );
    println!("Published, on 20 cores: seeds 2.02 and 1.29, EM 0.81 and 0.25");
    Ok(())
}

/// Rows of bytes around many centres, which overlap.
fn bytes((n, d): (usize, usize)) -> Array2<u8> {
    let mut rng = Rng::from_seed(7);
    let centres = Array2::from_shape_fn((20_000, d), |_| 128.0 + 30.0 * rng.normal());
    let mut x = Array2::zeros((n, d));
    let values = x.as_slice_mut().expect("row-major");
    let parts = values.par_chunks_mut(1_024 * d).enumerate();
    parts.for_each(|(part, rows)| {
        let mut rng = Rng::from_seed((n + part) as u64);
        for row in rows.chunks_mut(d) {
            let centre = rng.below(centres.nrows());
            for (x, mean) in row.iter_mut().zip(centres.row(centre)) {
                *x = (mean + 20.0 * rng.normal()) as u8;
            }
        }
    });
    x
}
