//! Generated data are what they say.

use approx::assert_abs_diff_eq;
use coremix::datasets::Birch;

#[test]
fn clusters_have_their_centre_and_unit_variance() {
    for birch in [Birch::grid(4_000), Birch::random(4_000)] {
        let data = birch.generate::<f64>(3).unwrap();
        for c in 0..25 {
            let rows = data
                .points
                .outer_iter()
                .zip(&data.labels)
                .filter(|(_, l)| **l == c);
            let (mut n, mut sum, mut squares) = (0.0, [0.0; 2], 0.0);
            for (row, _) in rows {
                n += 1.0;
                for j in 0..2 {
                    let t = row[j] - data.centres[[c as usize, j]];
                    sum[j] += t;
                    squares += t * t;
                }
            }
            assert_eq!(n, 4_000.0);
            assert!(sum.iter().all(|s| (s / n).abs() < 0.08));
            assert_abs_diff_eq!(squares / (2.0 * n), 1.0, epsilon = 0.06);
        }
    }
    let grid = Birch::grid(1).generate::<f64>(0).unwrap().centres;
    assert!(
        (grid[[6, 0]] - 4.0 * std::f64::consts::SQRT_2).abs() < 1e-12
            && (grid[[6, 1]] - 4.0 * std::f64::consts::SQRT_2).abs() < 1e-12
    );
    assert!(Birch::grid(0).generate::<f32>(0).is_err());
}
