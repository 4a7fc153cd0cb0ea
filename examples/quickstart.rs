//! Clusters generated points, says what happened, and draws the result: `cargo run --release --example quickstart`.
//!
//! For rows of your own and other algorithms there is the command `coremix` (in `cli/`).

use coremix::datasets::Birch;
use coremix::families::GaussianMixture;
use coremix::metrics;
use coremix::prelude::*;
use ndarray::{Array1, Array2};
use plotters::prelude::*;
use std::error::Error as StdError;
use std::f64::consts::TAU;

/// Where the picture goes.
const PICTURE: &str = "out/quickstart.svg";
const CLUSTERS: usize = 25;
/// Rows that stand for all.
const CORESET: usize = 360;
/// Components that share a point (C'), and neighbours of each that are searched for better ones (G).
const SHARING: usize = 5;

fn main() -> std::result::Result<(), Box<dyn StdError>> {
    // 5 x 5 round clusters of 24 points.
    let birch = Birch::grid(24).generate::<f64>(1)?;
    let data = Dense::new(birch.points.view())?;
    println!(
        "vc-GMM with {CLUSTERS} clusters on {} points",
        birch.points.nrows()
    );

    // EM keeps to the neighbourhood of its seeds: those of `fast` have left poor optima by split and merge.
    let seeds = MeansOf::new(algorithms::fast(CLUSTERS).build()?);
    let near = Neighborhood::default().c_prime(SHARING).neighbors(SHARING);
    let vc_gmm = algorithms::truncated(CLUSTERS, near).coreset(Lightweight::new(CORESET));
    let fit = vc_gmm.seeder(seeds).fit(&data)?;
    println!("\nfree energy after each iteration");
    for (iteration, free_energy) in fit.report.free_energies.iter().enumerate() {
        println!("{iteration:>5}{free_energy:>15.3}");
    }
    println!("\n{}", fit.report);

    // The score of all points, over all components.
    let score = fit.model.score(&data)?;
    let (found, known) = (score.labels.view(), birch.labels.view());
    println!("quantization error      {:.6e}", score.quantization_error);
    println!("log-likelihood          {:.6e}", score.log_likelihood);
    println!(
        "adjusted Rand index     {:.6}",
        metrics::adjusted_rand_index(found, known)?
    );
    let rmse = metrics::matched_rmse(fit.model.means(), birch.centres.view())?;
    println!("matched RMSE of centres {rmse:.6}");

    let coreset = fit
        .coreset
        .as_ref()
        .map_or(&[][..], |coreset| &coreset.rows);
    let supports = fit
        .supports
        .as_ref()
        .expect("a truncated search has supports");
    let scene = Scene {
        points: &birch.points,
        labels: &score.labels,
        model: &fit.model,
        coreset,
        supports,
    };
    scene.draw()?;
    println!("picture                 {PICTURE}");
    Ok(())
}

/// The scene to draw.
struct Scene<'a> {
    points: &'a Array2<f64>,
    labels: &'a Array1<u32>,
    model: &'a GaussianMixture<f64>,
    /// The rows of the coreset, and the components that share each (rows, C'), best first.
    coreset: &'a [usize],
    supports: &'a Array2<u32>,
}

/// Colours told apart on white.
const COLOURS: [RGBColor; 9] = [
    RGBColor(46, 107, 180),
    RGBColor(222, 119, 25),
    RGBColor(44, 145, 84),
    RGBColor(205, 55, 66),
    RGBColor(126, 87, 176),
    RGBColor(20, 158, 174),
    RGBColor(206, 84, 150),
    RGBColor(139, 97, 67),
    RGBColor(141, 149, 32),
];
const INK: RGBColor = RGBColor(33, 37, 41);

impl Scene<'_> {
    /// Points by component, those of the coreset in full colour; centres with their standard deviation; and for some points
    /// lines to the centres that share them.
    fn draw(&self) -> std::result::Result<(), Box<dyn StdError>> {
        std::fs::create_dir_all("out")?;
        let area = SVGBackend::new(PICTURE, (900, 900)).into_drawing_area();
        area.fill(&WHITE)?;
        let means = self.model.means();
        let at = |n: usize| (self.points[[n, 0]], self.points[[n, 1]]);
        let centre = |c: u32| (means[[c as usize, 0]], means[[c as usize, 1]]);
        let colour = |c: u32| COLOURS[c as usize % COLOURS.len()];
        let column = |j| {
            let column = self.points.column(j);
            let low = column.iter().copied().fold(f64::INFINITY, f64::min);
            low - 1.0..column.iter().copied().fold(low, f64::max) + 1.0
        };
        let mut chart = ChartBuilder::on(&area)
            .margin(15)
            .caption(
                "vc-GMM: points, centres, and components that share a point",
                ("sans-serif", 22),
            )
            .x_label_area_size(40)
            .y_label_area_size(50)
            .build_cartesian_2d(column(0), column(1))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("column 0")
            .y_desc("column 1")
            .draw()?;
        let mut used = vec![false; self.points.nrows()];
        self.coreset.iter().for_each(|&n| used[n] = true);
        let points = (0..used.len()).map(|n| {
            let strength = if used[n] { 0.8 } else { 0.25 };
            Circle::new(at(n), 3, colour(self.labels[n]).mix(strength).filled())
        });
        chart
            .draw_series(points)?
            .label("points; those of the coreset in full colour")
            .legend(|at| Circle::new(at, 3, COLOURS[0].mix(0.8).filled()));
        // Lines as wide as their component's share of the point.
        for place in (0..self.coreset.len()).step_by(1 + self.coreset.len() / 30) {
            let from = at(self.coreset[place]);
            let support = self.supports.row(place);
            for (c, share) in support
                .iter()
                .zip(self.shares(from, support.as_slice().expect("a row")))
            {
                let style = colour(*c)
                    .mix(0.4 + 0.6 * share)
                    .stroke_width(1 + (2.0 * share) as u32);
                chart.draw_series([PathElement::new([from, centre(*c)], style)])?;
            }
            let ring = chart.draw_series([Circle::new(from, 4, INK.stroke_width(1))])?;
            if place == 0 {
                ring.label("a point, with lines to the components that share it")
                    .legend(|at| Circle::new(at, 4, INK.stroke_width(1)));
            }
        }
        let deviation = self.model.variances()[[0, 0]].sqrt();
        for c in 0..means.nrows() as u32 {
            let (x, y) = centre(c);
            let round = (0..=32).map(|i| (TAU * f64::from(i) / 32.0).sin_cos());
            let round = round.map(|(sin, cos)| (x + deviation * cos, y + deviation * sin));
            chart.draw_series([PathElement::new(round.collect::<Vec<_>>(), INK.mix(0.7))])?;
            let cross = chart.draw_series([Cross::new((x, y), 5, INK.stroke_width(2))])?;
            if c == 0 {
                cross
                    .label("a mean, and one standard deviation around it")
                    .legend(|at| Cross::new(at, 5, INK.stroke_width(2)));
            }
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.9))
            .border_style(INK.mix(0.3))
            .draw()?;
        area.present()?;
        Ok(())
    }

    /// The responsibilities of the components of a support for a point: all have one variance and one proportion.
    fn shares(&self, (x, y): (f64, f64), support: &[u32]) -> Vec<f64> {
        let (means, variance) = (self.model.means(), self.model.variances()[[0, 0]]);
        let log_density = |c: &u32| {
            let mean = means.row(*c as usize);
            -((x - mean[0]).powi(2) + (y - mean[1]).powi(2)) / (2.0 * variance)
        };
        let logs: Vec<f64> = support.iter().map(log_density).collect();
        let best = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = logs.iter().map(|log| (log - best).exp()).sum();
        logs.iter().map(|log| (log - best).exp() / total).collect()
    }
}
