//! The bounded search (E35, E40) beside Lloyd's algorithm from the same seeds, on data of many kinds.

use coremix::algorithms;
use coremix::prelude::*;
use ndarray::Array2;

/// Numbers that other programs make as well: SplitMix64.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Between 0 and 1, neither of them.
    fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }

    /// Between two sizes, evenly by their logarithms.
    fn size(&mut self, from: usize, to: usize) -> usize {
        let (from, to) = (from as f64, to as f64);
        (from * (to / from).powf(self.uniform())).round() as usize
    }

    fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        (-2.0 * u.ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
    }

    /// Student's t with two degrees of freedom, by its quantile function.
    fn student(&mut self) -> f64 {
        let p = self.uniform();
        (2.0 * p - 1.0) / (2.0 * p * (1.0 - p)).sqrt()
    }
}

const KINDS: [&str; 9] = [
    "normal",
    "blobs",
    "power-law sizes",
    "Student",
    "lattice",
    "scaled uniform",
    "near-collinear",
    "sorted line",
    "two far groups",
];

fn rows(kind: &str, n: usize, d: usize, seed: u64) -> Array2<f64> {
    let mut numbers = Numbers(seed);
    let mut fill = |mut f: Box<dyn FnMut(&mut Numbers, usize, usize) -> f64>| {
        let mut x = Array2::zeros((n, d));
        for i in 0..n {
            for j in 0..d {
                x[[i, j]] = f(&mut numbers, i, j);
            }
        }
        x
    };
    match kind {
        "normal" => fill(Box::new(|r, _, _| r.normal())),
        "blobs" | "power-law sizes" => {
            let blobs = (n / 30).max(2);
            let places = Array2::from_shape_fn((blobs, d), |_| 0.0);
            let mut of_places = Numbers(seed ^ 1);
            let places = places.mapv(|_: f64| 10.0 * of_places.uniform());
            let power = kind != "blobs";
            let mut of_row = 0;
            fill(Box::new(move |r, _, j| {
                if j == 0 {
                    of_row = match power {
                        false => r.below(blobs),
                        true => ((blobs as f64).powf(r.uniform()) - 1.0) as usize,
                    };
                }
                places[[of_row, j]] + 0.3 * r.normal()
            }))
        }
        "Student" => fill(Box::new(|r, _, _| r.student())),
        "lattice" => {
            let side = ((n as f64).powf(1.0 / d as f64) * 0.7).max(2.0) as usize;
            fill(Box::new(move |r, _, _| r.below(side) as f64))
        }
        "scaled uniform" => fill(Box::new(|r, _, j| {
            r.uniform() * 10f64.powf(-(j as f64) / 3.0)
        })),
        "near-collinear" => {
            let mut along = 0.0;
            fill(Box::new(move |r, _, j| {
                if j == 0 {
                    along = 100.0 * r.uniform();
                }
                along + 0.1 * r.normal()
            }))
        }
        "sorted line" => fill(Box::new(move |_, i, j| {
            (i as f64 / n as f64) * (j + 1) as f64
        })),
        "two far groups" => fill(Box::new(|r, i, _| (i % 2) as f64 * 1e4 + r.normal())),
        _ => unreachable!("no other kind"),
    }
}

fn lloyd(x: &Array2<f64>, k: usize, seed: u64) -> Option<f64> {
    let data = Dense::new(x.view()).unwrap();
    let fit = algorithms::k_means(k)
        .seeder(HierarchicalKMeansPlusPlus::new())
        .seed(seed)
        .tolerance(0.0)
        .max_iterations(1000)
        .build()
        .unwrap()
        .fit(&data);
    match fit {
        Ok(fit) => Some(fit.model.quantization_error(&data).unwrap()),
        Err(_) => None,
    }
}

fn bounded(x: &Array2<f64>, k: usize, seed: u64, refine: Refine) -> f64 {
    let data = Dense::new(x.view()).unwrap();
    let fit = algorithms::k_means(k)
        .seeder(HierarchicalKMeansPlusPlus::new())
        .seed(seed)
        .max_iterations(0)
        .refine(refine)
        .build()
        .unwrap()
        .fit(&data)
        .unwrap();
    let error = fit.model.quantization_error(&data).unwrap();
    if std::env::var("SHOW").is_ok() {
        print!(
            "  [{} it {} M looks]",
            fit.report.iterations,
            fit.report.evaluations.search / 1_000_000
        );
    }
    error
}

fn fast(x: &Array2<f64>, k: usize, seed: u64) -> f64 {
    let data = Dense::new(x.view()).unwrap();
    let fit = algorithms::fast(k)
        .seed(seed)
        .build()
        .unwrap()
        .fit(&data)
        .unwrap();
    fit.model.quantization_error(&data).unwrap()
}

#[test]
fn dev_random() {
    let (mut bad, mut count) = (0, 0);
    let only: Option<u64> = std::env::var("ONLY").ok().map(|s| s.parse().unwrap());
    let most: usize = std::env::var("MOST").map_or(8000, |s| s.parse().unwrap());
    let cases: u64 = std::env::var("CASES").map_or(90, |s| s.parse().unwrap());
    let mut numbers = Numbers(7);
    for case in 0..cases {
        let kind = KINDS[case as usize % 9];
        let n = numbers.size(500, most);
        let d = numbers.size(1, 64);
        let k = numbers.size(2, n / 5);
        if only.is_some_and(|o| o != case) {
            continue;
        }
        let x = rows(kind, n, d, case);
        let started = std::time::Instant::now();
        let Some(reference) = lloyd(&x, k, case) else {
            continue;
        };
        let of_lloyd = started.elapsed();
        let refine = Refine::new()
            .moves(0)
            .coordinates(usize::MAX)
            .tolerance(0.0)
            .max_iterations(1000);
        let started = std::time::Instant::now();
        let got = bounded(&x, k, case, refine);
        let of_this = started.elapsed();
        let sub = bounded(&x, k, case, Refine::new().moves(0));
        let ratio = got / reference;
        count += 1;
        if ratio > 1.02 {
            bad += 1;
        }
        println!(
            "{case:>4} {kind:<16} n {n:>6} d {d:>3} k {k:>5}  {reference:.4e} {ratio:.4} defaults {:.4}  ms {:.0} {:.0}{}",
            sub / reference,
            of_lloyd.as_secs_f64() * 1e3,
            of_this.as_secs_f64() * 1e3,
            if ratio > 1.02 { " <<<" } else { "" }
        );
    }
    println!("{bad} of {count}");
}

#[test]
fn dev_known() {
    for seed in 0..3 {
        let x = rows("Student", 7028, 1, seed);
        let reference = lloyd(&x, 1237, seed).unwrap();
        let refine = Refine::new()
            .moves(0)
            .coordinates(usize::MAX)
            .tolerance(0.0)
            .max_iterations(1000);
        println!(
            "student: lloyd {reference:.5} bounded {:.5} default {:.5} fast {:.5}",
            bounded(&x, 1237, seed, refine),
            bounded(&x, 1237, seed, Refine::new().moves(0)),
            fast(&x, 1237, seed)
        );
    }
    for seed in 0..3 {
        let x = rows("Student", 100_000, 1, seed);
        println!(
            "student 1e5: fast {:.5} {:.5}",
            fast(&x, 1000, seed),
            fast(&x, 1000, seed + 10)
        );
    }
    for seed in 0..3 {
        let mut r = Numbers(seed);
        let places = Array2::<f64>::zeros((416, 39)).mapv(|_| 20.0 * r.uniform());
        let mut x = Array2::zeros((1622, 39));
        for i in 0..1622 {
            for j in 0..39 {
                x[[i, j]] = places[[i % 416, j]] + r.normal();
            }
        }
        let reference = lloyd(&x, 416, seed).unwrap();
        let refine = Refine::new()
            .moves(0)
            .coordinates(usize::MAX)
            .tolerance(0.0)
            .max_iterations(1000);
        println!(
            "blobs: lloyd {reference:.5} bounded {:.5} all {:.5} fast {:.5}",
            bounded(&x, 416, seed, refine),
            bounded(&x, 416, seed, Refine::new().near(416)),
            fast(&x, 416, seed)
        );
    }
}
