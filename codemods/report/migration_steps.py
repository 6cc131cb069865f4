"""What to do next, in order, from what a report holds."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.report.migration import BY_HAND, CUDA_ONLY, PROBLEMS, REVIEW, Migration, Step
from codemods.report.wording import count


def steps(migration: Migration) -> Iterator[Step]:
    """The steps that this repository needs; what decides whether the others are worth while comes first."""
    yield from _mend(migration)
    yield from _decide(migration)
    yield from _apply(migration)
    yield from _by_hand(migration)
    yield from _try(migration)


def _mend(migration: Migration) -> Iterator[Step]:
    if migration.problems:
        paths = count(len(migration.problems), "path")
        yield Step(
            f"Mend or exclude {paths} that could not be read, converted or written; convert again.", "", PROBLEMS
        )


def _decide(migration: Migration) -> Iterator[Step]:
    bound = [count(len(migration.obstacles), "dependency", "dependencies")] if migration.obstacles else []
    if migration.cuda_sources:
        bound.append(count(len(migration.cuda_sources), "CUDA source"))
    if bound:
        yield Step(
            f"Choose the target device, and decide what takes the place of {' and '.join(bound)} there: a vendor's "
            "offer, a general form, or a port.",
            "",
            CUDA_ONLY,
        )


def _apply(migration: Migration) -> Iterator[Step]:
    if not migration.files_changed:
        return
    files = count(migration.files_changed, "file")
    if migration.written is None:
        yield Step(f"Apply the conversion of {files} on a branch of its own.", "uncuda convert . --write")
    else:
        yield Step(f"Commit the {count(len(migration.written), 'written file')} by themselves.", "git diff --stat")
    if migration.figures.review:
        places = count(migration.figures.review, "converted place")
        yield Step(f"Look at {places} of the tier review.", "", REVIEW)
    yield Step(
        "Run the project's tests where they ran before, with AI_DEVICE unset: nothing may have changed on CUDA.",
        "env -u AI_DEVICE python -m pytest",
    )


def _by_hand(migration: Migration) -> Iterator[Step]:
    if migration.figures.by_hand:
        places = count(migration.figures.by_hand, "place")
        yield Step(f"Work through {places} that are left to a person, one kind at a time.", "", BY_HAND)


def _try(migration: Migration) -> Iterator[Step]:
    if not migration.figures.sites:
        return
    yield Step(
        "Rehearse the training script on a virtual device of the target, such as npu: it needs no hardware.",
        "uncuda rehearse --device npu --max-steps 20 train.py",
    )
    yield Step(
        "Run it on the target, and compare the loss of the first steps with that on CUDA.",
        "AI_DEVICE=npu python train.py",
    )
    yield Step("Convert again: what was converted stays as it is, and what is left is listed.", "uncuda convert .")
