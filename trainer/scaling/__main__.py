"""The entry: measures every size in turns, then writes rows and charts."""

import os
import sys

from trainer.scaling.arguments import PROGRAM, Order, OrderError, parse


def main(words: list[str]) -> int:
    """The exit status."""
    order = parse(words)
    try:
        _measure(order)
        if order.predict:
            _predict(order)
    except OrderError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2
    return 0


def _measure(order: Order) -> None:
    # Imported here because torch takes seconds, and a wrong argument should not.
    from trainer.scaling.figures import draw_measured
    from trainer.scaling.rows import rows_of, write
    from trainer.scaling.sizes import Measured, Size, run, sizes_of

    if (order.out / "runs").exists():
        raise OrderError(f"--out {order.out} has runs already: choose another folder")
    measured: dict[Size, list[Measured]] = {size: [] for size in sizes_of(order)}
    for turn in range(order.turns):
        for size, each in measured.items():
            each.append(run(order, size, f"{size.hosts}-hosts-{size.rails}-rails-{turn}"))
            print(
                f"{size.hosts} hosts, {size.ranks} ranks, {size.rails} rails: {each[-1].step_seconds:.3f} s "
                f"a step"
            )
    rows, cores = rows_of(measured, order.compute), len(os.sched_getaffinity(0))
    write(order.out, "scaling", rows, {"cores": cores, "rate": order.rate, "trainer": list(order.trainer)})
    draw_measured(order.out / "scaling.png", rows, cores)
    print(f"see {order.out}/scaling.png, scaling.json and scaling.csv")


def _predict(order: Order) -> None:
    from trainer.scaling.figures import PUBLISHED, draw_predicted
    from trainer.scaling.predict import USED, predicted
    from trainer.scaling.rows import write

    rows = predicted(order)
    write(
        order.out,
        "predicted",
        rows,
        {"predicted": True, "part_of_flops_assumed": USED, "published": PUBLISHED},
    )
    draw_predicted(order.out / "predicted.png", rows)
    print(f"see {order.out}/predicted.png, predicted.json and predicted.csv")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
