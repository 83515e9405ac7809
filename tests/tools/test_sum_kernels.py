"""The checks of ./dev test gpu-kernels find kernels that are not as they must be."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "gpu"))
import sum_kernels  # noqa: E402

REPORT = """ptxas info    : Compiling entry function 'sum_float32_sum_2' for 'sm_90'
ptxas info    : Function properties for sum_float32_sum_2
    0 bytes stack frame, {spilled} bytes spill stores, 0 bytes spill loads
ptxas info    : Used {registers} registers, used 0 barriers
"""
LISTING = """    Function : sum_float32_sum_2
        /*0210*/              @!P0 {first} R2, R2, R3 ;                  /* 0x000000030202c221 */
        /*0220*/                   FADD R2, R2, R4 ;                     /* 0x0000000402027221 */
"""
NAMES = ["sum_float32_sum_2"]


def report(registers: int = 62, spilled: int = 0) -> str:
    return REPORT.format(registers=registers, spilled=spilled)


def test_a_good_kernel_has_no_fault() -> None:
    assert list(sum_kernels.faults_of_report(report(), NAMES)) == []
    assert list(sum_kernels.faults_of_listing(LISTING.format(first="FMUL"), NAMES)) == []


def test_registers_and_spills_beyond_the_limit_are_faults() -> None:
    assert "65 registers" in "".join(sum_kernels.faults_of_report(report(registers=65), NAMES))
    assert "spills 8 bytes" in "".join(sum_kernels.faults_of_report(report(spilled=8), NAMES))


def test_a_kernel_that_is_missing_or_unknown_is_a_fault() -> None:
    faults = list(sum_kernels.faults_of_report(report(), ["sum_float32_sum_3"]))
    assert faults == [
        "sum_float32_sum_2 is no kernel of src/kernels/gpu/sum.h",
        "sum_float32_sum_3 was not compiled",
    ]


def test_a_fused_addition_is_a_fault_under_a_predicate_too() -> None:
    assert "has 1 FFMA" in "".join(sum_kernels.faults_of_listing(LISTING.format(first="FFMA"), NAMES))


def test_a_listing_without_additions_is_not_trusted() -> None:
    assert list(sum_kernels.faults_of_listing("", NAMES)) == [
        "the listing shows no addition in sum_float32_sum_2"
    ]


def test_the_names_are_those_of_the_header() -> None:
    names = sum_kernels.names_of_kernels()
    assert len(names) == len(set(names)) == sum_kernels.KERNELS
    assert "sum_bfloat16_float32_avg_3" in names
