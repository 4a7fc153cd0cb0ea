"""Measures this crate and other libraries, or draws what was measured; see ./run."""

import argparse
import pathlib
import sys

import environment


def arguments():
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--reference", type=int, default=sys.maxsize, metavar="SEEDS", help="of the reference, at most")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--for", dest="time", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--only", default="", help="names of peers, separated by semicolons")
    parser.add_argument("--without", default="", help="names of peers, separated by semicolons")
    parser.add_argument("--resume", action="store_true", help="keep the runs that are known")
    parser.add_argument("--draw", action="store_true", help="tables and picture of the runs that are known")
    parser.add_argument("--docs", type=pathlib.Path, help="with --draw: the folder of frontier.svg")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/peers"))
    parser.add_argument(
        "--iteration", action="store_true", help="one iteration of exact k-means on generated rows, no sets"
    )
    parser.add_argument("sets", nargs="*", metavar="SET.npy:K")
    return parser.parse_args()


def chosen(peers, options):
    from results import REFERENCE

    only, without = ({name for name in names.split(";") if name} for names in (options.only, options.without))
    if unknown := (only | without) - {peer.name for peer in peers}:
        raise SystemExit(f"{', '.join(sorted(unknown))}: not one of {', '.join(peer.name for peer in peers)}")
    # Errors are relative to the reference.
    only |= {REFERENCE} if only else set()
    return [peer for peer in peers if (not only or peer.name in only) and peer.name not in without]


def main(options):
    from results import Results

    path = options.out / "runs.jsonl"
    if options.draw:
        import report

        report.write(Results(path).runs, options.out, options.docs)
        return
    if options.iteration:
        import iteration

        iteration.compare()
        return
    import configurations
    import measure

    if path.exists() and not options.resume:
        path.replace(path.with_suffix(".old.jsonl"))
    done = measure.measure(options.sets, chosen(configurations.peers(), options), Results(path), options)
    print("All runs are known." if done else "Not all runs are known: run again with --resume.")


if __name__ == "__main__":
    parsed = arguments()
    environment.prepare(parsed.threads)
    main(parsed)
